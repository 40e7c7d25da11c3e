"""Logs from Gymnasium environments, policies in environments, and models and domains as
environments.

Gymnasium returns an observation before the first action; foretell's logs have none. So the
observation of ``reset`` is logged as if it followed the *first action of the space*. Logs, models
and policies record this (``first_action``): no policy chooses that action, returns do not include
that step, and ``Policy.start`` and ``Model.filter`` take the observation as an argument.
Environments without such an observation, such as the built-in domains, are recognised, and no step
is added.

Importing this module registers the built-in domains, ``foretell/tiger-v0`` and so on;
``gymnasium.make("foretell.gymnasium:foretell/tiger-v0")`` imports it automatically.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle, RecordConstructorArgs
from numpy.typing import NDArray

from foretell._acting import record
from foretell._domain import Domain
from foretell._model import Filter, Model
from foretell._native import built_in, name_of
from foretell._spaces import Encoder, Names, check

__all__ = ["DomainEnv", "ModelEnv", "PredictiveStates", "record"]

LONGEST_WAIT = 100
"""Restarts at most, if the model ends an episode before the first action."""

NOTHING = "nothing yet"
"""The observation of these environments before the first action."""


class _Symbolic(gymnasium.Env[int, int], EzPickle):
    """An environment whose actions and observations are indices of names."""

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
        """Starts an episode."""
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
        """Takes an action, given by its index."""
        observation, reward, terminated = self._step(int(action))
        return self._number[observation], reward, terminated, False, {"observation": observation}


class DomainEnv(_Symbolic):
    """A built-in domain, a ``.POMDP`` file or the map of a maze as an environment.

    Observations are indices of ``observation_names``; the last one is the observation before the
    first action.

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
    """A learned model as an environment: observations are sampled from its predictions.

    Parameters
    ----------
    model : Model
        The model whose predictions are sampled.
    reward : function, optional
        The reward of an action and an observation, given by their names. By default the rewards of
        the model, which must be refined on logs with rewards.
    render_mode : str, optional
        Accepted for Gymnasium; nothing is rendered.

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
            raise ValueError("the model has no rewards; refine it on logs with rewards, or give a function reward=")
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
    """Replaces observations by the state of a model: a vector that other libraries can treat as a
    fully observed state.

    Parameters
    ----------
    env : gymnasium.Env
        An environment that `record` accepts.
    model : Model
        A model learned from logs of such an environment; not an n-gram, which has no state vector.
    encode : function, optional
        As in `record`.

    Examples
    --------
    >>> import gymnasium
    >>> import foretell as ft
    >>> env = gymnasium.make("foretell.gymnasium:foretell/tiger-v0")
    >>> model = ft.learn(ft.record(env, episodes=300, max_steps=20), mix=0, rank=3)
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
            check(env.observation_space, "observation")
        self._filter = model.filter()
        self._first_action = model.first_action
        self._encode = encode
        self._known = Names(env)
        self._rewarded = model._native.observes_rewards
        size = len(self._filter.state)
        if size == 0:
            raise ValueError('the model is an n-gram, and has no state vector; learn one with only="linear" or only="latent"')
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)

    def _observe(self, action: str, shown: Any, reward: float, terminated: bool) -> None:
        observation = self._known.observation(shown, self._encode)
        earned = reward if self._rewarded else None
        self._filter.update(action, name_of(observation), terminated=terminated, reward=earned)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Starts an episode."""
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
