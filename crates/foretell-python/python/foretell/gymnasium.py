"""Gymnasium both ways: logs from environments, policies in them, and models and domains as environments.

Gymnasium shows an observation before the first action, our logs have none. So what ``reset`` shows is logged as what answers the
*first action of the space*, as if it had been taken. Logs, models and policies know that (``first_action``): nobody decides about that step, returns
begin behind it, and ``Policy.start`` and ``Model.filter`` take what was shown. Environments that show nothing there, such as the built-in
domains, are recognised, and nothing is added.

Importing this module registers the built-in domains, ``foretell/tiger-v0`` and so on; ``gymnasium.make("foretell.gymnasium:foretell/tiger-v0")``
imports it by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle, RecordConstructorArgs
from numpy.typing import NDArray

from foretell._data import from_numpy
from foretell._domain import Domain
from foretell._encoding import Encoding
from foretell._learning import learn
from foretell._logs import Logs
from foretell._model import Filter, Model
from foretell._native import agent_recipe, built_in, name_of
from foretell._options import Preset, checked
from foretell._planning import plan
from foretell._policy import Policy
from foretell._progress import Progress, progress as told
from foretell._results import Returns, Trained

if TYPE_CHECKING:
    from foretell.discretise import Discretiser

__all__ = ["DomainEnv", "ModelEnv", "PredictiveStates", "record"]

Encoder = Callable[[Any], Any]
"""Makes a name, a whole number or a tuple of these of what an environment shows."""

LONGEST_WAIT = 100
"""Episodes after which a model that ends them before the first action is taken by its word."""

NOTHING = "nothing yet"
"""What the environments of this module show before the first action."""


def _check(space: spaces.Space[Any], what: str) -> None:
    """Refuses spaces that have no symbols."""
    match space:
        case spaces.Discrete() | spaces.MultiDiscrete() | spaces.MultiBinary() | spaces.Text():
            return
        case spaces.Box() if np.issubdtype(space.dtype, np.integer):
            return
        case spaces.Tuple():
            for part in space:
                _check(part, what)
        case spaces.Dict():
            for part in space.values():
                _check(part, what)
        case _:
            raise ValueError(
                f"{what} space {space} has no symbols; give encode=, such as a discretiser (foretell.discretise)"
            )


def symbol(value: Any) -> Any:
    """What an environment shows, as a whole number or a tuple of them."""
    if isinstance(value, dict):
        return tuple(symbol(value[key]) for key in sorted(value))
    if isinstance(value, tuple | list):
        return tuple(symbol(part) for part in value)
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else tuple(array.ravel().tolist())


def _actions(space: spaces.Space[Any]) -> list[Any]:
    """All actions of a space."""
    match space:
        case spaces.Discrete():
            return [int(space.start + i) for i in range(int(space.n))]
        case spaces.MultiDiscrete():
            flat = space.nvec.ravel()
            return [np.array(index).reshape(space.nvec.shape) for index in np.ndindex(*flat)]
        case spaces.Tuple():
            return list(itertools.product(*map(_actions, space)))
        case spaces.MultiBinary():
            return [np.array(index).reshape(space.shape) for index in np.ndindex(*([2] * int(np.prod(space.shape))))]
        case _:
            raise ValueError(f"action space {space} is not finite; wrap the environment in one with Discrete or MultiDiscrete actions")


class _Names:
    """Names of the actions of an environment, and back. Those of our own environments are words."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        inner: Any = env.unwrapped
        self.actions = _actions(env.action_space)
        words = getattr(inner, "action_names", None)
        numbers = [name_of(symbol(action)) for action in self.actions]
        self.names = numbers if words is None else list(words)
        self._named = dict(zip(self.names, self.actions))
        self._name = dict(zip(numbers, self.names))
        self.words: list[str] | None = getattr(inner, "observation_names", None)
        self.shows_first = not getattr(inner, "shows_nothing_first", False)

    def of_name(self, name: str) -> Any:
        """The action of that name."""
        if name not in self._named:
            raise ValueError(f"the environment has no action {name!r}; it has {', '.join(self.names[:12])}")
        return self._named[name]

    def name(self, action: Any) -> str:
        """The name of an action."""
        number = name_of(symbol(action))
        if number not in self._name:
            raise ValueError(f"the environment has no action {action!r}; it has {', '.join(self.names[:12])}")
        return self._name[number]

    def observation(self, value: Any, encode: Encoder | None) -> Any:
        """The symbol of an observation."""
        if encode is not None:
            return encode(value)
        return self.words[int(value)] if self.words is not None else symbol(value)


# Random actions must not follow the chance of an environment that has the same seed.
_OWN_CHANCE = 0x666F7265


def _checked(env: Any) -> None:
    if not isinstance(env, gymnasium.Env):
        remedy = "give gymnasium.make(name)" if isinstance(env, str) else "give a single one, not a vector of them"
        raise TypeError(f"a {type(env).__name__} is no gymnasium.Env; {remedy}")


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
    """Lets an environment run, and returns what happened.

    Parameters
    ----------
    env : gymnasium.Env
        With Discrete or MultiDiscrete spaces, or with ``encode`` whatever observations.
    policy : Policy or function, optional
        Who acts: a policy, or a function from an observation to an action; by default every action is taken alike.
    episodes : int
        How many.
    max_steps : int, optional
        Steps after which an episode is cut, where the environment does not do so itself.
    epsilon : float
        Share of actions taken at random where a policy acts.
    encode : discretiser or function, optional
        Makes symbols of observations. A discretiser that was fitted (see `foretell.discretise`) is carried by models of these logs and
        their policies, which then need no ``encode``.
    seed : int
        Seed of the environment and of random actions.
    progress : bool or callable, optional
        As of `learn`.

    Examples
    --------
    >>> import gymnasium
    >>> import foretell as ft
    >>> env = gymnasium.make("foretell.gymnasium:foretell/tiger-v0")
    >>> ft.record(env, episodes=3, max_steps=5)
    <foretell.Logs: 3 episodes, 15 steps, 3 actions, 2 observations>
    """
    _checked(env)
    checked(episodes)
    if not (policy is None or isinstance(policy, Policy) or callable(policy)):
        raise TypeError(f"policy = {policy!r}: give a Policy or a function; the number of episodes comes behind, episodes={policy!r}")
    with told(progress) as tell:
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
        _check(env.observation_space, "observation")
    names = _Names(env)
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
            # As likely as if actions had been taken alike, so that it weighs as much as others.
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
    """What makes the symbols, if it is a discretiser."""
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
    """What a policy earns in an environment; `foretell.evaluate` calls it."""
    _checked(env)
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

    def half(values: NDArray[np.float64]) -> float:
        return float(1.96 * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0

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
    observe_reward: bool,
    pessimism: float,
    discount: float | None,
    max_steps: int | None,
    encode: Encoder | None,
    seed: int,
    tell: Progress | None,
) -> Trained:
    """Samples, learns, plans, and again, in an environment; `foretell.agent` calls it."""
    _checked(env)
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
        model = learn(
            logs, preset=preset, refine=known["refine"], rank=rank, observe_reward=observe_reward, seed=seed, progress=False
        )
        made = plan(model, logs, preset=preset, pessimism=pessimism, discount=discount, seed=seed, progress=False)
        promised.append(_promised(made, logs))
    assert made is not None and logs is not None, "there is at least one round"
    return Trained(made, logs, promised)


def _promised(policy: Policy, logs: Logs) -> float:
    """What a policy is worth at the start, by its own estimate: the mean over what was shown there."""
    if policy.first_action is None:
        return max(policy.start().values.values())
    columns = logs.to_numpy()
    shown, counts = np.unique(columns["observation"][columns["step"] == 0], return_counts=True)
    values = [max(policy.start(logs.observations[o]).values.values()) for o in shown]
    return float(np.average(values, weights=counts))


class _Symbolic(gymnasium.Env[int, int], EzPickle):
    """An environment whose actions and observations are numbers of names."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}

    def __init__(
        self, actions: list[str], observations: list[str], first_action: str | None = None, render_mode: str | None = None
    ) -> None:
        self.render_mode = render_mode
        self.action_names = actions
        names = list(dict.fromkeys(name.removesuffix(" [end]") for name in observations))
        self.shows_nothing_first = first_action is None
        self._first_action = first_action
        self.observation_names = [*names, NOTHING] if first_action is None else names
        self._number = {name: i for i, name in enumerate(self.observation_names)}
        self.action_space: spaces.Space[Any] = spaces.Discrete(len(actions))
        self.observation_space: spaces.Space[Any] = spaces.Discrete(len(self.observation_names))

    def _restart(self, seed: int) -> None:
        raise NotImplementedError

    def _step(self, action: int) -> tuple[str, float, bool]:
        raise NotImplementedError

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begins an episode."""
        super().reset(seed=seed)
        self._restart(int(self.np_random.integers(1 << 63)))
        if self._first_action is None:
            return self._number[NOTHING], {}
        for _ in range(LONGEST_WAIT):
            observation, _, terminated = self._step(self.action_names.index(self._first_action))
            if not terminated:
                break
            self._restart(int(self.np_random.integers(1 << 63)))
        return self._number[observation], {"observation": observation}

    def step(self, action: int) -> tuple[int, SupportsFloat, bool, bool, dict[str, Any]]:
        """Takes an action, by number."""
        observation, reward, terminated = self._step(int(action))
        return self._number[observation], reward, terminated, False, {"observation": observation}


class DomainEnv(_Symbolic):
    """A built-in domain, a ``.POMDP`` file or the map of a maze as an environment.

    Observations are numbers of ``observation_names``, the last of which is shown before the first action.

    Examples
    --------
    >>> import foretell as ft
    >>> env = ft.gymnasium.DomainEnv("tiger", render_mode="ansi")
    >>> env.action_space
    Discrete(3)
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> info["observation"], env.render()
    ('growl-left', 'tiger-left')
    """

    def __init__(self, domain: str | Domain, render_mode: str | None = None) -> None:
        EzPickle.__init__(self, domain, render_mode)
        self.domain = domain if isinstance(domain, Domain) else Domain(domain)
        super().__init__(self.domain.actions, self.domain.observations, None, render_mode)
        self._simulator = self.domain.simulator()

    def _restart(self, seed: int) -> None:
        self._simulator.reset(seed=seed)

    def _step(self, action: int) -> tuple[str, float, bool]:
        return self._simulator.step(self.action_names[action])

    def render(self) -> Any:
        """The hidden state as text, with ``render_mode="ansi"``."""
        return self._simulator.picture() if self.render_mode == "ansi" else None


class ModelEnv(_Symbolic):
    """A learned model as an environment: what it predicts is drawn, and happens.

    Parameters
    ----------
    model : Model
        Its observations are drawn from what it predicts.
    reward : function, optional
        The reward of an action and what answered it, by their names. Without it the model must be refined on logs with rewards,
        and its own are given.
    render_mode : str, optional
        Of Gymnasium; nothing is drawn.

    Examples
    --------
    >>> import foretell as ft
    >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), refine=True)
    >>> env = ft.gymnasium.ModelEnv(model)
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> round(reward)
    -1
    """

    def __init__(self, model: Model, reward: Callable[[str, str], float] | None = None, render_mode: str | None = None) -> None:
        EzPickle.__init__(self, model, reward, render_mode)
        super().__init__(model.actions, model.observations, model.first_action, render_mode)
        self._model = model
        self._reward = reward
        self._names = model.observations
        if reward is None and not model._native.has_rewards:
            raise ValueError("the model knows no rewards: refine it on logs with rewards, or give reward=, a function")
        self._world = model._native.environment(0) if reward is None else None
        self._filter: Filter = model.filter()

    def _restart(self, seed: int) -> None:
        self._filter.reset()
        if self._world is not None:
            self._world.reset(seed)

    def _step(self, action: int) -> tuple[str, float, bool]:
        if self._world is not None:
            o, earned = self._world.step(action)
            drawn = self._names[o]
        else:
            probabilities = self._filter.predict_array(self.action_names[action])
            o = int(self.np_random.choice(len(probabilities), p=probabilities / probabilities.sum()))
            drawn = self._names[o]
            self._filter.update(self.action_names[action], drawn)
            earned = 0.0
        name = drawn.removesuffix(" [end]")
        if self._reward is not None:
            earned = self._reward(self.action_names[action], name)
        return name, earned, self._model._native.terminal[o]

    def render(self) -> Any:
        """Nothing."""
        return None


class PredictiveStates(gymnasium.Wrapper[NDArray[np.float64], Any, Any, Any], RecordConstructorArgs):
    """Shows the state of a model in place of observations: a vector that other libraries can learn from as if all were seen.

    Parameters
    ----------
    env : gymnasium.Env
        What `record` can log.
    model : Model
        Learned from logs of such an environment.
    encode : function, optional
        As of `record`.

    Examples
    --------
    >>> import gymnasium
    >>> import foretell as ft
    >>> env = gymnasium.make("foretell.gymnasium:foretell/tiger-v0")
    >>> model = ft.learn(ft.record(env, episodes=300, max_steps=20), rank=3)
    >>> wrapped = ft.gymnasium.PredictiveStates(env, model)
    >>> state, info = wrapped.reset(seed=1)
    >>> state, reward, terminated, truncated, info = wrapped.step(0)
    >>> state.shape
    (3,)
    """

    def __init__(self, env: gymnasium.Env[Any, Any], model: Model, encode: Encoder | None = None) -> None:
        RecordConstructorArgs.__init__(self, model=model, encode=encode)
        gymnasium.Wrapper.__init__(self, env)
        encode = model.discretiser if encode is None else encode
        if encode is None:
            _check(env.observation_space, "observation")
        self._filter = model.filter()
        self._first_action = model.first_action
        self._encode = encode
        self._known = _Names(env)
        self._rewarded = model._native.observes_rewards
        size = len(self._filter.state)
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)

    def _observe(self, action: str, shown: Any, reward: float, terminated: bool) -> None:
        observation = self._known.observation(shown, self._encode)
        earned = reward if self._rewarded else None
        self._filter.update(action, name_of(observation), terminated=terminated, reward=earned)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Begins an episode."""
        shown, info = self.env.reset(seed=seed, options=options)
        if self._first_action is None:
            self._filter.reset()
        else:
            self._filter.reset(name_of(self._known.observation(shown, self._encode)))
        return self._filter.state, info

    def step(self, action: Any) -> tuple[NDArray[np.float64], SupportsFloat, bool, bool, dict[str, Any]]:
        """Takes an action."""
        shown, reward, terminated, truncated, info = self.env.step(action)
        self._observe(self._known.name(action), shown, float(reward), bool(terminated))
        return self._filter.state, reward, terminated, truncated, info


for _domain, _horizon in built_in():
    _identity = f"foretell/{_domain}-v0"
    if _identity not in gymnasium.registry:
        gymnasium.register(
            id=_identity,
            entry_point="foretell.gymnasium:DomainEnv",
            kwargs={"domain": _domain},
            max_episode_steps=_horizon,
        )
