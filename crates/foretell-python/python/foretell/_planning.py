"""From models to policies, and what these earn."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Literal, overload

from foretell import _native
from foretell._domain import Domain
from foretell._logs import Logs
from foretell._model import Model
from foretell._options import Preset, checked, domain_of, given, native_of
from foretell._policy import Policy
from foretell._progress import Progress, progress as told
from foretell._results import LogValue, Returns, Solution, Trained

if TYPE_CHECKING:
    import gymnasium

    from foretell._spaces import Encoder

    Env = gymnasium.Env[Any, Any]

# Steps with a reward below which logs hardly tell what can be earned.
FEW_REWARDS = 50


def plan(
    model: Model,
    logs: Logs,
    *,
    preset: Preset = "default",
    progress: bool | Progress | None = None,
    planner: Literal["auto", "fitted-q", "qmdp", "fast-informed", "point-based"] | None = None,
    pessimism: float | None = None,
    state: Literal["predictive", "memory", "last"] | None = None,
    last: int | None = None,
    regressor: Literal["auto", "trees", "table", "mean"] | None = None,
    window: int | None = None,
    rounds: int | None = None,
    discount: float | None = None,
    trees: int | None = None,
    min_split: int | None = None,
    structure: Literal["frozen", "refitted"] | None = None,
    ensembles: Literal["per-action", "joint"] | None = None,
    seed: int | None = None,
) -> Policy:
    """Finds a policy that earns much reward: in the POMDP of a refined model, or by fitted-Q on the logs.

    Parameters
    ----------
    model : Model
        What will happen.
    logs : Logs
        With rewards.
    preset : {"default", "paper"}
        The recipe to start from. What is given below changes it.
    progress : bool or callable, optional
        As of `learn`.
    planner : str, default "auto"
        How the policy is found
        "point-based": value iteration between two bounds; "qmdp": as if the state were seen after the next step; "fast-informed": after
        two; these need a refined model. "fitted-q": on the logs, as in the paper. "auto": point-based where the refined model predicts
        better than the last steps do, else fitted-q.
    pessimism : float, default 0.0
        Standard deviations of a reward that are taken off where an action was never tried; half of them after three trials
    state : {"memory", "predictive", "last"}, default "memory"
        What the policy knows of the past, with fitted-Q
        "predictive": the state of the model; "memory": and the last observation beside it; "last": the last observations alone.
    last : int, default 2
        Observations in the state, where it is made of the last ones
    regressor : {"auto", "trees", "table", "mean"}, default "auto"
        Who estimates Q
        "trees" over states; a "table" over the last steps; the "mean" of both; "auto": who predicts better.
    window : int, default 2
        Most of the latest steps that a table looks at, beside the time
    rounds : int, default 100
        Rounds of fitted-Q, or trials of the point-based planner
    discount : float, default 0.99
        Discount γ
    trees : int, default 25
        Trees in a forest
    min_split : int, default 30
        Rows below which a node of a tree is a leaf
    structure : {"frozen", "refitted"}, default "frozen"
        When the structure of the trees is chosen
        "frozen": once, without a look at the targets; "refitted": in every round, as printed.
    ensembles : str, default "per-action"
        How actions enter Q
        "per-action": a forest for each; "joint": one forest with the action among its inputs.
    seed : int, default 0
        Seed of the trees

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> policy = ft.plan(ft.learn(logs, refine=True), logs, discount=0.95)
    >>> policy
    <foretell.Policy: by point-based, 3 actions>
    """
    params = given(
        planner=planner,
        pessimism=pessimism,
        state=state,
        last=last,
        regressor=regressor,
        window=window,
        rounds=rounds,
        discount=discount,
        trees=trees,
        min_split=min_split,
        structure=structure,
        ensembles=ensembles,
        seed=seed,
    )
    with told(progress) as tell:
        native, only = _native.plan(native_of(model, Model), native_of(logs, Logs), preset, params, tell)
    if only is not None:
        words = f"every reward in the logs is {only:g}, so they cannot tell a good policy from a bad one"
        warnings.warn(words, stacklevel=2)
    return Policy(native)


@overload
def evaluate(
    policy: Policy,
    where: Logs,
    *,
    episodes: int = 10_000,
    max_steps: int | None = None,
    discount: float | None = None,
    replicates: int = 20,
    seed: int = 0,
) -> LogValue: ...


@overload
def evaluate(
    policy: Policy,
    where: str | os.PathLike[str] | Domain | Env,
    *,
    episodes: int = 10_000,
    max_steps: int | None = None,
    discount: float | None = None,
    seed: int = 0,
    encode: Encoder | None = None,
    progress: bool | Progress | None = None,
) -> Returns: ...


def evaluate(
    policy: Policy,
    where: str | os.PathLike[str] | Domain | Env | Logs,
    *,
    episodes: int = 10_000,
    max_steps: int | None = None,
    discount: float | None = None,
    replicates: int = 20,
    seed: int = 0,
    encode: Encoder | None = None,
    progress: bool | Progress | None = None,
) -> Returns | LogValue:
    """What a policy earns in a domain or a Gymnasium environment, or what logs say that it would earn.

    Parameters
    ----------
    policy : Policy
        Who acts.
    where : str, Domain, gymnasium.Env or Logs
        A domain or environment to act in; or logs, best those that it was not planned on.
    episodes : int
        How many; with logs, of rollouts in the policy's own model.
    max_steps : int, optional
        Steps after which an episode is cut: by default the domain's horizon, or the longest episode of the logs.
    discount : float, optional
        By default the domain's, or that of planning.
    replicates : int
        With logs, samples of them for an interval.
    seed : int
        Seed of the episodes.
    encode : function, optional
        Makes symbols of what an environment shows, if the policy has no discretiser that does.
    progress : bool or callable, optional
        As of `learn`, where an environment is acted in.

    Returns
    -------
    Returns or LogValue
        `LogValue` with logs.

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> policy = ft.plan(ft.learn(logs, refine=True), logs, discount=0.95)
    >>> ft.evaluate(policy, "tiger", episodes=1000).discounted_return > 10
    True
    >>> by_logs = ft.evaluate(policy, ft.sample("tiger", episodes=200, seed=2), episodes=500)
    >>> by_logs.rollouts.value > by_logs.logged.discounted_return
    True
    """
    checked(episodes, discount)
    if isinstance(where, Logs):
        first = policy.first_action if where.first_action is not None else None
        report = _native.evaluate_by(
            native_of(policy, Policy), where._native, episodes, max_steps, discount, replicates, seed, first
        )
        worth = LogValue._of(report)
        if worth.rewarded < FEW_REWARDS:
            little = f"only {worth.rewarded} steps of these logs had a reward that is not zero, so the estimates rest on little"
            warnings.warn(little, stacklevel=2)
        elif worth.agree is False:
            warnings.warn("the two estimates disagree, so trust neither; more logs would tell", stacklevel=2)
        return worth
    if not isinstance(where, str | os.PathLike | Domain):
        if not hasattr(where, "action_space"):
            raise TypeError(f"{where!r} is no domain, environment or logs")
        native_of(policy, Policy)
        from foretell._acting import evaluate_in_env

        with told(progress) as tell:
            return evaluate_in_env(policy, where, episodes, max_steps, discount, encode, seed, tell)
    domain = domain_of(where)
    return Returns(**_native.evaluate_in(native_of(policy, Policy), domain._native, episodes, max_steps, discount, seed))


def sample(
    domain: str | os.PathLike[str] | Domain,
    *,
    episodes: int = 1000,
    max_steps: int | None = None,
    policy: Policy | None = None,
    epsilon: float = 0.0,
    seed: int = 0,
    progress: bool | Progress | None = None,
) -> Logs:
    """Lets a domain run, and returns what happened.

    Parameters
    ----------
    domain : str or Domain
        A built-in domain, a ``.POMDP`` file or the map of a maze.
    episodes : int
        How many.
    max_steps : int, optional
        Steps after which an episode is cut: by default the domain's horizon.
    policy : Policy, optional
        Who acts; by default every action is taken alike.
    epsilon : float
        Share of actions taken at random where a policy acts.
    seed : int
        Episode i depends on it and on i only.
    progress : bool or callable, optional
        As of `learn`.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.sample("colored-gridworld", episodes=100, seed=1)
    <foretell.Logs: 100 episodes, 1,298 steps, 4 actions, 15 observations>
    """
    checked(episodes)
    native = None if policy is None else native_of(policy, Policy)
    with told(progress) as tell:
        return Logs(_native.sample(domain_of(domain)._native, episodes, max_steps, native, epsilon, seed, tell))


def agent(
    where: str | os.PathLike[str] | Domain | Env,
    *,
    preset: Preset = "default",
    policy: Policy | None = None,
    observe_reward: bool = False,
    pessimism: float = 0.0,
    discount: float | None = None,
    max_steps: int | None = None,
    encode: Encoder | None = None,
    seed: int = 0,
    progress: bool | Progress | None = None,
    agent_rounds: int | None = None,
    episodes: int | None = None,
    sampling: Literal["uniform", "epsilon-greedy"] | None = None,
    epsilon: float | None = None,
    refine: bool | None = None,
) -> Trained:
    """Does everything from nothing: samples episodes, learns, plans, and again with what it planned (Algorithm 2 of the paper).

    Parameters
    ----------
    where : str, Domain or gymnasium.Env
        Where to act.
    preset : {"default", "paper"}
        The recipe to start from. What is given below changes it.
    policy : Policy, optional
        Acts while episodes are sampled, in place of ``sampling``; ``epsilon`` of its actions are random.
    observe_reward : bool
        Let rewards be part of observations, for where they tell more than observations do.
    pessimism : float
        How much is taken off the reward of what was rarely tried, as of `plan`.
    discount : float, optional
        Discount of planning: by default the domain's, but at most 0.99; in an environment that of `plan`.
    max_steps : int, optional
        Steps after which an episode is cut, in an environment that does not do so itself.
    encode : discretiser or function, optional
        Makes symbols of what an environment shows, as of `record`.
    seed : int
        Seed of everything.
    progress : bool or callable, optional
        As of `learn`.
    agent_rounds : int, default 5
        N, rounds of sampling, learning and planning
    episodes : int, default 10000
        Episodes sampled in all, shared out among the rounds
    sampling : {"epsilon-greedy", "uniform"}, default "epsilon-greedy"
        Who acts while episodes are sampled
        "epsilon-greedy": the plan so far, once there is one; "uniform": every action alike.
    epsilon : float, default 0.3
        ε, the share of actions taken at random once there is a plan
    refine : bool, default True
        Whether models are refined into POMDPs before planning

    Examples
    --------
    >>> import foretell as ft
    >>> trained = ft.agent("tiger", episodes=500, agent_rounds=2)
    >>> trained.policy
    <foretell.Policy: by point-based, 3 actions>
    >>> len(trained.logs)
    500
    """
    params = given(agent_rounds=agent_rounds, episodes=episodes, sampling=sampling, epsilon=epsilon, refine=refine)
    if not isinstance(where, str | os.PathLike | Domain):
        from foretell._acting import agent_in_env

        with told(progress) as tell:
            return agent_in_env(
                where, preset, params, policy, observe_reward, pessimism, discount, max_steps, encode, seed, tell
            )
    if max_steps is not None or encode is not None:
        raise ValueError("max_steps and encode are of environments; a domain has its own")
    native = None if policy is None else native_of(policy, Policy)
    with told(progress) as tell:
        made, logs, promised = _native.agent(
            domain_of(where)._native, preset, params, native, observe_reward, pessimism, discount, seed, tell
        )
    return Trained(Policy(made), Logs(logs), promised)


def solve(
    domain: str | os.PathLike[str] | Domain,
    *,
    planner: Literal["qmdp", "fast-informed", "point-based"] = "point-based",
    discount: float | None = None,
    gap: float = 1e-3,
    seconds: float = 60.0,
    episodes: int = 0,
    max_steps: int | None = None,
    seed: int = 0,
    progress: bool | Progress | None = None,
) -> Solution:
    """Plans with the exact model of a domain, and bounds what can be earned in it.

    Parameters
    ----------
    domain : str or Domain
        One that has an exact model.
    planner : {"point-based", "fast-informed", "qmdp"}
        Bounds that meet; or quick bounds from above.
    discount : float, optional
        By default the domain's.
    gap : float
        Stop when the bounds are this close, as a share of the value.
    seconds : float
        Stop after so many.
    episodes : int
        Let the policy act in so many.
    max_steps : int, optional
        Steps after which these are cut: by default as many as matter at this discount, or the domain's horizon.
    seed : int
        Seed of these.
    progress : bool or callable, optional
        As of `learn`.

    Examples
    --------
    >>> import foretell as ft
    >>> solution = ft.solve("tiger")
    >>> solution.lower <= 19.372 and 19.371 <= solution.upper
    True
    """
    with told(progress) as tell:
        report = _native.solve(
            domain_of(domain)._native, planner, discount, gap, seconds, episodes, max_steps, seed, tell
        )
    return Solution._of(report)
