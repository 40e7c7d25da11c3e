"""Acting in Gymnasium environments: recording logs, evaluating policies, and agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from foretell._data import from_numpy
from foretell._encoding import Encoding
from foretell._learning import learn
from foretell._logs import Logs
from foretell._native import agent_recipe, name_of
from foretell._options import Preset, checked
from foretell._planning import plan
from foretell._policy import Policy
from foretell._progress import Progress, progress as reporting
from foretell._results import Returns, Trained
from foretell._spaces import Encoder, Names, check

if TYPE_CHECKING:
    from foretell.discretise import Discretiser

# Random actions must be independent of the randomness of an environment with the same seed.
_OWN_CHANCE = 0x666F7265


def _single(env: Any) -> None:
    """Refuses anything but a single environment."""
    if not isinstance(env, gymnasium.Env):
        remedy = "give gymnasium.make(name)" if isinstance(env, str) else "give a single environment, not a vector of them"
        raise TypeError(f"a {type(env).__name__} is not a gymnasium.Env; {remedy}")


def record(
    env: gymnasium.Env[Any, Any],
    policy: Policy | Callable[[Any], Any] | None = None,
    episodes: int = 1000,
    *,
    max_steps: int | None = None,
    epsilon: float = 0.0,
    encode: Encoder | None = None,
    seed: int = 0,
    progress: bool | Progress | None = None,
) -> Logs:
    """Runs episodes in an environment, and returns them as logs.

    Parameters
    ----------
    env : gymnasium.Env
        An environment with Discrete or MultiDiscrete spaces; with ``encode``, observations of any
        kind.
    policy : Policy or function, optional
        The policy that acts, or a function from an observation to an action. By default actions are
        uniformly random.
    episodes : int
        Number of episodes.
    max_steps : int, optional
        Steps after which an episode is truncated, for environments without a limit of their own.
    epsilon : float
        Probability of a random action instead of the policy's.
    encode : discretiser or function, optional
        Maps observations to symbols. Models and policies of these logs keep a fitted discretiser
        (see `foretell.discretise`), and then need no ``encode``.
    seed : int
        Seed of the environment and of random actions.
    progress : bool or callable, optional
        As in `learn`.

    Examples
    --------
    >>> import gymnasium
    >>> import foretell as ft
    >>> env = gymnasium.make("foretell.gymnasium:foretell/tiger-v0")
    >>> ft.record(env, episodes=3, max_steps=5)
    <foretell.Logs: 3 episodes, 15 steps, 3 actions, 2 observations>
    """
    _single(env)
    checked(episodes)
    if not (policy is None or isinstance(policy, Policy) or callable(policy)):
        raise TypeError(f"policy = {policy!r}: give a Policy or a function; for the number of episodes, write episodes={policy!r}")
    with reporting(progress) as tell:
        return _recorded(env, policy, episodes, max_steps, epsilon, encode, seed, tell)


def _recorded(
    env: gymnasium.Env[Any, Any],
    policy: Policy | Callable[[Any], Any] | None,
    episodes: int,
    max_steps: int | None,
    epsilon: float,
    encode: Encoder | None,
    seed: int,
    tell: Progress | None,
) -> Logs:
    if encode is None and isinstance(policy, Policy):
        encode = policy.discretiser
    if encode is None:
        check(env.observation_space, "observation")
    names = Names(env)
    if isinstance(policy, Policy) and (unknown := set(policy.actions) - set(names.names)):
        raise ValueError(f"the policy may take the action {min(unknown)!r}; the environment has {', '.join(names.names[:12])}")
    rng = np.random.default_rng([_OWN_CHANCE, seed])
    columns: dict[str, Any] = {
        name: [] for name in ("actions", "observations", "rewards", "episodes", "terminated", "truncated", "action_probabilities")
    }

    def add(*row: Any) -> None:
        for column, value in zip(columns.values(), row):
            column.append(value)

    count = len(names.actions)
    for episode in range(episodes):
        if tell is not None:
            tell("recording", episode, episodes)
        shown, _ = env.reset(seed=seed if episode == 0 else None)
        observation = names.observation(shown, encode)
        if names.shows_first:
            # With the probability of a uniformly random action, so that it has the same weight as others.
            add(names.names[0], name_of(observation), 0.0, episode, False, False, 1 / count)
        run = None
        if isinstance(policy, Policy):
            run = policy.start() if policy.first_action is None else policy.start(name_of(observation))
        steps, terminated, truncated = 0, False, False
        while not (terminated or truncated):
            best: str | None = None
            if run is not None:
                best = run.action
            elif policy is not None and not isinstance(policy, Policy):
                best = names.name(policy(shown))
            if best is None or rng.random() < epsilon:
                name = names.names[int(rng.integers(count))]
            else:
                name = best
            probability = 1 / count if best is None else epsilon / count + (1 - epsilon) * (name == best)
            shown, earned, terminated, truncated, _ = env.step(names.of_name(name))
            observed, reward = name_of(names.observation(shown, encode)), float(earned)
            steps += 1
            terminated = bool(terminated)
            truncated = not terminated and (bool(truncated) or (max_steps is not None and steps >= max_steps))
            add(name, observed, reward, episode, terminated, truncated, probability)
            if run is not None:
                run.observe(observed, action=name, reward=reward, terminated=terminated)
    logs = from_numpy(**columns)
    encoding = Encoding.of(_discretiser(encode), names.names[0] if names.shows_first else None)
    return Logs(logs._native.with_actions(names.names), encoding)


def _discretiser(encode: Encoder | None) -> Discretiser | None:
    """The encoder, if it is a discretiser."""
    from foretell.discretise import Discretiser

    return encode if isinstance(encode, Discretiser) else None


def evaluate_in_env(
    policy: Policy,
    env: gymnasium.Env[Any, Any],
    episodes: int,
    max_steps: int | None,
    discount: float | None,
    encode: Encoder | None,
    seed: int,
    tell: Progress | None,
) -> Returns:
    """Returns of a policy in an environment; `foretell.evaluate` calls it."""
    _single(env)
    logs = _recorded(env, policy, episodes, max_steps, 0.0, encode, seed, tell)
    columns = logs.to_numpy()
    gamma = policy.params["discount"] if discount is None else discount
    starts = np.searchsorted(columns["episode_id"], np.arange(episodes))
    first = 0 if logs.first_action is None else 1
    step = columns["step"] - first
    rewards = np.where(step >= 0, columns["reward"], 0.0)
    plain = np.add.reduceat(rewards, starts)
    discounted = np.add.reduceat(rewards * gamma ** np.maximum(step, 0), starts)
    lengths = np.diff(np.append(starts, len(rewards))) - first

    def half(values: NDArray[np.float64]) -> float | None:
        return float(1.96 * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None

    return Returns(
        episodes=episodes,
        mean_return=float(plain.mean()),
        ci95=half(plain),
        discounted_return=float(discounted.mean()),
        discounted_ci95=half(discounted),
        mean_length=float(lengths.mean()),
        terminated=float(columns["terminated"].sum() / episodes),
    )


def agent_in_env(
    env: gymnasium.Env[Any, Any],
    preset: Preset,
    params: dict[str, Any],
    policy: Policy | None,
    observe_reward: bool | None,
    pessimism: float,
    discount: float | None,
    max_steps: int | None,
    encode: Encoder | None,
    seed: int,
    tell: Progress | None,
) -> Trained:
    """Repeatedly samples, learns and plans in an environment; `foretell.agent` calls it."""
    _single(env)
    known, shares, rank = agent_recipe(preset, params)
    greedy = known["sampling"] == "epsilon-greedy"
    logs: Logs | None = None
    made: Policy | None = None
    promised: list[float | None] = []
    for number, share in enumerate(shares):
        if tell is not None:
            tell("rounds", number, len(shares))
        acting = policy if policy is not None else made if greedy else None
        new = _recorded(env, acting, share, max_steps, known["epsilon"], encode, seed * len(shares) + number, None)
        logs = new if logs is None else logs + new
        linear: dict[str, Any] = {} if known["refine"] else {"mix": 0.0, "rank": rank}
        model = learn(logs, preset=preset, observe_reward=observe_reward, seed=seed, progress=False, **linear)
        made = plan(model, logs, preset=preset, pessimism=pessimism, discount=discount, seed=seed, progress=False)
        promised.append(_promised(made, logs))
    assert made is not None and logs is not None, "there is at least one round"
    return Trained(made, logs, promised)


def _promised(policy: Policy, logs: Logs) -> float:
    """The policy's own estimate of its value at the start: the mean over the first observations."""
    if policy.first_action is None:
        return max(policy.start().values.values())
    columns = logs.to_numpy()
    shown, counts = np.unique(columns["observation"][columns["step"] == 0], return_counts=True)
    values = [max(policy.start(logs.observations[o]).values.values()) for o in shown]
    return float(np.average(values, weights=counts))
