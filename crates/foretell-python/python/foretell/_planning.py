"""Planning with models, and evaluating policies."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from foretell import _native
from foretell._domain import Domain
from foretell._logs import Logs
from foretell._model import Model
from foretell._options import Preset, checked, domain_of, given, native_of
from foretell._policy import Policy
from foretell._progress import Progress, progress as reporting
from foretell._results import LogValue, Returns, Solution, Trained

if TYPE_CHECKING:
    import gymnasium

    from foretell._spaces import Encoder

    Env = gymnasium.Env[Any, Any]

EstimatorName = Literal["pdis", "snpdis", "dr", "wdr", "fqe", "model"]
ESTIMATORS: tuple[EstimatorName, ...] = ("pdis", "snpdis", "dr", "wdr", "fqe", "model")


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
    regressor: Literal["auto", "trees", "table", "mean", "changes"] | None = None,
    window: int | None = None,
    rounds: int | None = None,
    discount: float | None = None,
    trees: int | None = None,
    min_split: int | None = None,
    structure: Literal["frozen", "refitted"] | None = None,
    ensembles: Literal["per-action", "joint"] | None = None,
    seed: int | None = None,
) -> Policy:
    """Computes a policy with a high return: in the POMDP of a refined model, or by fitted-Q on the
    logs.

    Parameters
    ----------
    model : Model
        The model to plan with.
    logs : Logs
        Logs with rewards.
    preset : {"default", "paper"}
        Parameters to start from. The parameters below override them.
    progress : bool or callable, optional
        As in `learn`.
    planner : str, default "auto"
        How the policy is computed.
        "point-based": value iteration between two bounds. "qmdp": assumes that the state becomes
        visible after the next step. "fast-informed": assumes that it becomes visible after two
        steps. These three need a refined model. "fitted-q": fitted-Q on the logs, as in the paper.
        "auto": point-based if the model is refined, predicts better than the last steps do, and has
        states that determine rewards; otherwise fitted-q; another one if its policy is better beyond
        noise by cross-fitted value on the logs.
    pessimism : float, default 0.0
        Penalty on untried actions, in standard deviations of the reward; half after three trials.
    state : {"memory", "predictive", "last"}, default "memory"
        What the policy remembers of the past, with fitted-Q.
        "predictive": the state of the model. "memory": that state and the last observation. "last":
        the last observations only.
    last : int, default 2
        Number of observations in the state, if it consists of the last ones.
    regressor : {"auto", "trees", "table", "mean", "changes"}, default "auto"
        What estimates Q.
        "trees" over states; a "table" over the last steps; the "mean" of both; "changes": a table
        over the last observations that differed from the one before; "auto": whichever predicts
        better, or earns more on held-out logs.
    window : int, default 2
        Maximum number of last steps that the table distinguishes, besides the time step.
    rounds : int, default 100
        Rounds of fitted-Q, or of the point-based planner.
    discount : float, default 0.99
        Discount γ.
    trees : int, default 25
        Trees in a forest.
    min_split : int, default 30
        Tree nodes with fewer rows than this are leaves.
    structure : {"frozen", "refitted"}, default "frozen"
        When the structure of the trees is chosen.
        "frozen": once, independently of the targets; "refitted": anew in every round, as in the
        paper.
    ensembles : str, default "per-action"
        How actions enter Q.
        "per-action": a forest for each; "joint": one forest with the action among its inputs.
    seed : int, default 0
        Seed of the trees.

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> policy = ft.plan(ft.learn(logs, refine=True, observe_reward=True), logs, discount=0.95)
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
    with reporting(progress) as tell:
        native, only = _native.plan(native_of(model, Model), native_of(logs, Logs), preset, params, tell)
    if only is not None:
        words = f"every reward in the logs is {only:g}, so good and bad policies cannot be distinguished; check the rewards"
        warnings.warn(words, stacklevel=2)
    policy = Policy(native)
    if policy.choice is not None and policy.choice.warning is not None:
        warnings.warn(policy.choice.warning, stacklevel=2)
    return policy


@overload
def evaluate(
    policy: Policy | str,
    where: Logs | None = None,
    *,
    logs: Logs | None = None,
    estimators: Sequence[EstimatorName] = ESTIMATORS,
    bound: Literal["bernstein", "bootstrap", "t"] = "t",
    level: float = 0.95,
    cross_fit: Literal["auto", "always", "never"] = "auto",
    folds: int | None = None,
    epsilon: float = 0.0,
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
    policy: Policy | str,
    where: str | os.PathLike[str] | Domain | Env | Logs | None = None,
    *,
    logs: Logs | None = None,
    estimators: Sequence[EstimatorName] = ESTIMATORS,
    bound: Literal["bernstein", "bootstrap", "t"] = "t",
    level: float = 0.95,
    cross_fit: Literal["auto", "always", "never"] = "auto",
    folds: int | None = None,
    epsilon: float = 0.0,
    episodes: int = 10_000,
    max_steps: int | None = None,
    discount: float | None = None,
    replicates: int = 20,
    seed: int = 0,
    encode: Encoder | None = None,
    progress: bool | Progress | None = None,
) -> Returns | LogValue:
    """Evaluates a policy in a domain or a Gymnasium environment, or estimates its value from logs.

    Parameters
    ----------
    policy : Policy or str
        The policy to evaluate; with logs also ``"always:ACTION"``, ``"uniform"`` or ``"logged"``.
    where : str, Domain, gymnasium.Env or Logs
        A domain or environment to act in, or logs.
    logs : Logs, optional
        The same as ``where``, for logs. If the policy was planned on them, it is planned anew on
        parts of them.
    estimators : sequence of str
        With logs, which of "pdis", "snpdis" (importance sampling, self-normalised), "dr", "wdr"
        (doubly robust, weighted), "fqe" (fitted-Q evaluation) and "model" (rollouts). The first of
        wdr, dr, snpdis, pdis, fqe, model decides.
    bound : {"t", "bootstrap", "bernstein"}
        With logs, the kind of interval.
    level : float
        With logs, how often intervals are meant to contain the value.
    cross_fit : {"auto", "always", "never"}
        With logs, when to plan anew on folds of them; "auto": if the policy was planned on them.
    folds : int, optional
        Folds for that. By default 2, or 5 of fewer than 500 episodes.
    epsilon : float
        With logs, probability of a uniformly random action instead of the policy's.
    episodes : int
        Number of episodes; with logs, number of rollouts in the policy's own model.
    max_steps : int, optional
        Steps after which an episode is truncated. By default the domain's horizon, or as many as are
        known of half of the logged episodes.
    discount : float, optional
        Discount of the discounted return. By default the domain's, or that used for planning; 1 with
        logs for a policy that was not planned.
    replicates : int
        With logs, number of bootstrap samples for the interval of fitted-Q evaluation.
    seed : int
        Seed of the episodes.
    encode : function, optional
        Maps observations of an environment to symbols, if the policy has no discretiser.
    progress : bool or callable, optional
        As in `learn`, for environments.

    Returns
    -------
    Returns or LogValue
        `LogValue` for logs, otherwise `Returns`.

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> policy = ft.plan(ft.learn(logs, refine=True, observe_reward=True), logs, discount=0.95)
    >>> ft.evaluate(policy, "tiger", episodes=1000).discounted_return > 10
    True
    >>> held_out = ft.sample("tiger", episodes=200, max_steps=5, seed=2)
    >>> by_logs = ft.evaluate("always:listen", logs=held_out, discount=0.95)
    >>> round(by_logs["wdr"].value, 3), by_logs.comparison.verdict
    (-4.524, 'better')
    """
    checked(episodes, discount)
    if logs is not None:
        if where is not None:
            raise TypeError("evaluate() got both a place to act in and logs; give one of them")
        where = logs
    if where is None:
        raise TypeError("evaluate() needs a domain or an environment to act in, or logs")
    if isinstance(where, Logs):
        plan = policy if isinstance(policy, Policy) else None
        first = where.first_action if plan is None else plan.first_action if where.first_action is not None else None
        question = {
            "estimators": list(estimators),
            "bound": bound,
            "level": level,
            "cross_fit": cross_fit,
            "folds": folds,
            "rollouts": episodes,
            "max_steps": max_steps,
            "discount": discount,
            "replicates": replicates,
            "seed": seed,
            "epsilon": epsilon,
        }
        if plan is None and not isinstance(policy, str):
            native_of(policy, Policy)
        native = None if plan is None else native_of(plan, Policy)
        worth = LogValue._of(_native.evaluate_by(native, policy if isinstance(policy, str) else "", where._native, question, first))
        for words in worth.warnings:
            warnings.warn(words, stacklevel=2)
        return worth
    if isinstance(policy, str):
        raise TypeError(f"policy {policy!r}: only a Policy can act; names of policies are for logs")
    if not isinstance(where, str | os.PathLike | Domain):
        if not hasattr(where, "action_space"):
            raise TypeError(f"{where!r} is not a domain, an environment or logs")
        native_of(policy, Policy)
        from foretell._acting import evaluate_in_env

        with reporting(progress) as tell:
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
    """Simulates a domain, and returns the episodes as logs.

    Parameters
    ----------
    domain : str or Domain
        A built-in domain, a ``.POMDP`` file or the map of a maze.
    episodes : int
        Number of episodes.
    max_steps : int, optional
        Steps after which an episode is truncated. By default the domain's horizon.
    policy : Policy, optional
        The policy that acts. By default actions are uniformly random.
    epsilon : float
        Probability of a random action instead of the policy's.
    seed : int
        Seed; episode i depends only on it and on i.
    progress : bool or callable, optional
        As in `learn`.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.sample("colored-gridworld", episodes=100, seed=1)
    <foretell.Logs: 100 episodes, 1,298 steps, 4 actions, 15 observations>
    """
    checked(episodes)
    native = None if policy is None else native_of(policy, Policy)
    with reporting(progress) as tell:
        return Logs(_native.sample(domain_of(domain)._native, episodes, max_steps, native, epsilon, seed, tell))


def agent(
    where: str | os.PathLike[str] | Domain | Env,
    *,
    preset: Preset = "default",
    policy: Policy | None = None,
    observe_reward: bool | None = None,
    pessimism: float = 0.0,
    discount: float | None = None,
    max_steps: int | None = None,
    encode: Encoder | None = None,
    seed: int = 0,
    progress: bool | Progress | None = None,
    agent_rounds: int | None = None,
    episodes: int | None = None,
    sampling: Literal["uniform", "epsilon-greedy", "committed"] | None = None,
    epsilon: float | None = None,
    refine: bool | None = None,
) -> Trained:
    """Runs the whole loop: samples episodes, learns, plans, and repeats with the new plan
    (Algorithm 2 of the paper).

    Parameters
    ----------
    where : str, Domain or gymnasium.Env
        Where the agent acts.
    preset : {"default", "paper"}
        Parameters to start from. The parameters below override them.
    policy : Policy, optional
        Policy that samples episodes instead of ``sampling``; each of its actions is random with
        probability ``epsilon``.
    observe_reward : bool, optional
        Whether rewards are part of observations. By default they are if observations and rewards
        are then predicted better.
    pessimism : float
        Penalty on untried actions, in standard deviations of the reward, as in `plan`.
    discount : float, optional
        Discount of planning. By default the domain's, but at most 0.99; in an environment the
        default of `plan`.
    max_steps : int, optional
        Steps after which an episode is truncated, for environments without a limit of their own.
    encode : discretiser or function, optional
        Maps observations of an environment to symbols, as in `record`.
    seed : int
        Seed of the whole run.
    progress : bool or callable, optional
        As in `learn`.
    agent_rounds : int, default 6
        N, rounds of sampling, learning and planning.
    episodes : int, default 10000
        Total number of episodes to sample, divided among the rounds.
    sampling : {"committed", "epsilon-greedy", "uniform"}, default "committed"
        Which policy acts while episodes are sampled.
        "committed": whole episodes of several plans, which compete, of a policy that seeks what was
        rarely tried, and of the best plan with random actions; in an environment as
        "epsilon-greedy". "epsilon-greedy": the latest plan, once there is one. "uniform": uniformly
        random actions.
    epsilon : float, default 0.3
        ε, the probability of a random action once there is a plan.
    refine : bool, default True
        Whether predictors are selected as in learning from logs, with POMDPs among them; otherwise
        models are linear.

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

        with reporting(progress) as tell:
            return agent_in_env(
                where, preset, params, policy, observe_reward, pessimism, discount, max_steps, encode, seed, tell
            )
    if max_steps is not None or encode is not None:
        raise ValueError("max_steps and encode apply to environments only; a domain has its own")
    native = None if policy is None else native_of(policy, Policy)
    with reporting(progress) as tell:
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
    """Plans with the exact model of a domain, and bounds its optimal value.

    Parameters
    ----------
    domain : str or Domain
        A domain with an exact model.
    planner : {"point-based", "fast-informed", "qmdp"}
        "point-based": converging lower and upper bounds; the others: fast upper bounds.
    discount : float, optional
        Discount. By default the domain's.
    gap : float
        Stop when the gap between the bounds is this fraction of the value.
    seconds : float
        Time limit in seconds.
    episodes : int
        Number of episodes in which to test the policy; 0 for none.
    max_steps : int, optional
        Steps after which these are truncated. By default as many as matter at this discount, or the
        domain's horizon.
    seed : int
        Seed of these episodes.
    progress : bool or callable, optional
        As in `learn`.

    Examples
    --------
    >>> import foretell as ft
    >>> solution = ft.solve("tiger")
    >>> solution.lower <= 19.372 and 19.371 <= solution.upper
    True
    """
    with reporting(progress) as tell:
        report = _native.solve(
            domain_of(domain)._native, planner, discount, gap, seconds, episodes, max_steps, seed, tell
        )
    return Solution._of(report)
