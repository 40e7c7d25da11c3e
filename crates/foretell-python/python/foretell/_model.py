"""Models, and their states during an episode."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foretell import _native
from foretell._encoding import Encoded, Encoding
from foretell._html import bars, count, some, table
from foretell._logs import Path
from foretell._selection import NAMES, Member, Selection, in_words

if TYPE_CHECKING:
    from foretell.discretise import Discretiser

Symbol = str | int | float | bool | Sequence[Any] | NDArray[Any] | np.generic
"""A name of an action or observation: a string, a whole number, or a tuple of these where several
make one symbol."""

Pair = tuple[Symbol, Symbol | None] | tuple[Symbol, Symbol | None, float | None]
"""An action and the observation that followed it (None if it is missing); and the reward, where it
is part of observations."""

NO_STATES = 'the model has no latent states; refine it first with foretell.refine, or learn it with only="latent"'


def rewarded(pair: Any) -> tuple[Any, Any, float | None]:
    """Action, observation and reward of a pair."""
    if isinstance(pair, tuple | list) and len(pair) in (2, 3):
        return pair[0], pair[1], pair[2] if len(pair) == 3 else None
    raise ValueError(f"{pair!r} is not a pair; give (action, observation) or (action, observation, reward)")


def named(probabilities: NDArray[np.float64], names: Sequence[str]) -> dict[str, float]:
    """Probabilities by name, the largest first, without those that are zero. Those of the same name
    are added up."""
    sums: dict[str, float] = {}
    for name, probability in zip(names, probabilities.tolist(), strict=True):
        sums[name] = sums.get(name, 0.0) + probability
    return dict(sorted(((name, p) for name, p in sums.items() if p > 0), key=lambda item: -item[1]))


class Model(Encoded):
    """A model that predicts observations, given actions; `learn` makes one.

    It predicts by an n-gram, a linear predictive state, a POMDP, or a mixture of these
    (``members``). A model with a POMDP has also the linear model that it was refined from.

    Examples
    --------
    >>> import foretell as ft
    >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), mix=0, rank=3)
    >>> model
    <foretell.Model: rank 3, 3 actions, 2 observations, learned from 500 episodes>
    >>> model.actions
    ['listen', 'open-left', 'open-right']
    >>> model.members
    [Member(kind='linear', size='rank 3', weight=1.0)]
    """

    def __init__(self, native: _native.Model, selection: Selection | None = None) -> None:
        self._native = native
        self._encoding = Encoding.loads(native.encoding)
        self._selection = selection

    @classmethod
    def load(cls, path: Path) -> Model:
        """Reads a model that `save` or ``foretell learn`` wrote.

        Examples
        --------
        >>> import foretell as ft
        >>> ft.learn(ft.sample("tiger", episodes=100, seed=1), mix=0, rank=3).save("model.safetensors")
        >>> ft.Model.load("model.safetensors").rank
        3
        """
        return cls(_native.Model.load(os.fspath(path)))

    def save(self, path: Path) -> None:
        """Writes the model to a file, for Python, Rust and the command line."""
        self._native.save(os.fspath(path))

    @property
    def actions(self) -> list[str]:
        """Names of the actions."""
        return self._native.actions

    @property
    def observations(self) -> list[str]:
        """Names of the observations; ``[end]`` is appended to those that end an episode."""
        return self._native.observations

    @property
    def members(self) -> list[Member]:
        """The predictors of the model and their weights, which sum to 1. For an ensemble those of
        its first model."""
        return [Member(**member) for member in self._native.members]

    @property
    def selection(self) -> Selection | None:
        """The evidence by which `learn` selected the predictors. None if it selected nothing, or if
        the model was read from a file."""
        return self._selection

    @property
    def rank(self) -> int:
        """Dimension of the linear predictive state. An error for an n-gram, which has none."""
        return self._native.rank

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of learning."""
        return self._native.params

    @property
    def spectrum(self) -> NDArray[np.float64]:
        """Singular values of the learned moments, the largest first. An error for an n-gram."""
        return self._native.spectrum

    @property
    def trained_on(self) -> tuple[int, int]:
        """Numbers of episodes and steps that it was learned from."""
        episodes, steps, _ = self._native.trained_on
        return episodes, steps

    @property
    def states(self) -> int | None:
        """Number of states of its POMDP; None if it has none. That of a mixture with several is the
        one that planners use."""
        return self._native.states

    @property
    def moments(self) -> str | None:
        """``"exact"`` or ``"compressed"`` if it keeps the moments that `update` and `merge` need;
        else None."""
        return self._native.moments

    @property
    def initial(self) -> NDArray[np.float64]:
        """The state at the start of an episode, c₁ (of the linear model). An error for an n-gram."""
        return self._native.initial

    @property
    def normalizer(self) -> NDArray[np.float64]:
        """c_∞, the normaliser of the linear model: its product with any state is 1. An error for an
        n-gram."""
        return self._native.normalizer

    def operator(self, action: Symbol, observation: Symbol, *, terminated: bool = False) -> NDArray[np.float64] | None:
        """C_ao of the linear model; None for a pair that was not seen in training. An error for an
        n-gram.

        Examples
        --------
        >>> import foretell as ft
        >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), mix=0, rank=3)
        >>> c = model.operator("listen", "growl-left") @ model.initial
        >>> bool(0 < model.normalizer @ c < 1)  # how likely the pair is in the logs
        True
        """
        return self._native.operator(action, observation, terminated=terminated)

    def pomdp(self) -> str:
        """The POMDP of a model with latent states, in Cassandra's format.

        Examples
        --------
        >>> import foretell as ft
        >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), refine=True)
        >>> "actions: listen open-left open-right" in model.pomdp()
        True
        """
        text = self._native.pomdp()
        if text is None:
            raise ValueError(NO_STATES)
        return text

    def tables(self) -> dict[str, NDArray[Any]]:
        """The POMDP of a model with latent states as arrays.

        Returns
        -------
        dict of arrays
            ``start`` (states), ``transitions`` (actions × states × states), ``emissions`` (actions
            × the state arrived in × observations), ``rewards`` (actions × states, expected) and
            ``terminal`` (states).

        Examples
        --------
        >>> import foretell as ft
        >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), rank=3, refine=True)
        >>> tables = model.tables()
        >>> listen = model.actions.index("listen")
        >>> growls = tables["start"] @ tables["transitions"][listen] @ tables["emissions"][listen]
        >>> growls.shape, round(float(growls.sum()), 9)
        ((2,), 1.0)
        """
        tables = self._native.tables()
        if tables is None:
            raise ValueError(NO_STATES)
        return tables

    def linear(self) -> Model:
        """The linear model only, without mixture, refinement and ensemble. An error for an n-gram.

        Examples
        --------
        >>> import foretell as ft
        >>> ft.learn(ft.sample("tiger", episodes=500, seed=1), rank=3, refine=True).linear()
        <foretell.Model: rank 3, 3 actions, 2 observations, learned from 500 episodes>
        """
        return Model(self._native.linear())

    def with_mix(self, mix: float) -> Model:
        """The model with another weight of the n-gram in its predictions, between 0 and 1. A mixture
        has this n-gram in addition to its members.

        Examples
        --------
        >>> import foretell as ft
        >>> ft.learn(ft.sample("tiger", episodes=500, seed=1), mix=0, rank=3).with_mix(0.2).params["mix"]
        0.2
        """
        return Model(self._native.with_mix(mix))

    def with_discretiser(self, discretiser: Discretiser | None) -> Model:
        """The model with a discretiser, which is saved with it. `from_numpy` and `record` do this
        automatically.

        Examples
        --------
        >>> import foretell as ft
        >>> grid = ft.discretise.Uniform(bins=2).fit([[0.0], [1.0]])
        >>> model = ft.learn(ft.from_numpy(["go"] * 40, grid.transform([0.1, 0.9] * 20)), mix=0, rank=2).with_discretiser(grid)
        >>> model.predict([("go", [0.2])], action="go")["1"] > 0.9
        True
        """
        return self._encoded(Encoding.of(discretiser, self.first_action))

    def _encoded(self, encoding: Encoding) -> Model:
        return Model(self._native.with_encoding(encoding.dumps()), self._selection)

    def filter(self, shown: Symbol | None = None) -> Filter:
        """The state of the model at the start of an episode.

        Parameters
        ----------
        shown : str, int or tuple, optional
            The observation before the first action, if the model was learned from Gymnasium logs.

        Examples
        --------
        >>> import foretell as ft
        >>> state = ft.learn(ft.sample("tiger", episodes=500, seed=1), mix=0, rank=3).filter()
        >>> 0.4 < state.update("listen", "growl-left") < 0.6
        True
        >>> state.predict("listen")["growl-left"] > 0.6
        True
        """
        state = Filter(self._native.filter(), self.observations, self._native.observations_without_rewards, self._encoding)
        state._begin(shown)
        return state

    def _after(self, history: Iterable[Pair]) -> Filter:
        state = self.filter()
        for action, observation, reward in map(rewarded, history):
            if observation is None:
                state.update_missing(action)
            else:
                state.update(action, observation, reward=reward)
        return state

    def predict(self, history: Iterable[Pair] = (), *, action: Symbol, rewards: bool = False) -> dict[str, float]:
        """Predicts the observation that follows a history and an action.

        Parameters
        ----------
        history : iterable of (action, observation)
            The episode so far; None for a missing observation. A reward may follow, as in `Logs`.
        action : str, int or tuple
            The next action.
        rewards : bool
            Whether observations are shown with the rewards that are part of them, if they are.

        Returns
        -------
        dict
            Probabilities of observations, the largest first. The remainder to 1 is for observations
            not seen in training.

        Examples
        --------
        >>> import foretell as ft
        >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), mix=0, rank=3)
        >>> prediction = model.predict([("listen", "growl-left"), ("listen", "growl-left")], action="listen")
        >>> next(iter(prediction))
        'growl-left'
        """
        return self._after(history).predict(action, rewards=rewards)

    def forecast(
        self, history: Iterable[Pair] = (), *, actions: Sequence[Symbol], rewards: bool = False
    ) -> list[dict[str, float]]:
        """Predicts the observation at each step of a sequence of actions, if the episode has not
        ended before.

        Returns one dictionary for each action, as in `predict`.

        Examples
        --------
        >>> import foretell as ft
        >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), mix=0, rank=3)
        >>> len(model.forecast(actions=["listen", "listen"]))
        2
        """
        return self._after(history).forecast(actions, rewards=rewards)

    def probability(self, test: Sequence[Pair], *, history: Iterable[Pair] = ()) -> float:
        """The probability that these pairs come next, given their actions.

        Examples
        --------
        >>> import foretell as ft
        >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), mix=0, rank=3)
        >>> 0.3 < model.probability([("listen", "growl-left"), ("listen", "growl-left")]) < 0.5
        True
        """
        return self._after(history).probability(test)

    def sample(
        self, history: Iterable[Pair] = (), *, actions: Sequence[Symbol], n: int = 1, seed: int = 0
    ) -> list[list[str]]:
        """Samples ``n`` sequences of observations that may follow the actions. A sequence is
        shorter if its episode ends.

        Examples
        --------
        >>> import foretell as ft
        >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), mix=0, rank=3)
        >>> [len(future) for future in model.sample(actions=["listen", "listen"], n=3, seed=1)]
        [2, 2, 2]
        """
        return self._after(history).sample(actions, n=n, seed=seed)

    def plot_spectrum(self, ax: Any = None) -> Any:
        """Draws the singular values; needs matplotlib. See `foretell.plot.spectrum`.

        Examples
        --------
        >>> import foretell as ft
        >>> axes = ft.learn(ft.sample("tiger", episodes=200, seed=1), mix=0, rank=3).plot_spectrum()
        >>> axes.figure.savefig("spectrum.png")
        """
        from foretell import plot

        return plot.spectrum(self, ax=ax)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._native.to_bytes(), self._selection)

    def __repr__(self) -> str:
        averaged = self._native.averaged
        parts = [
            in_words(self.members),
            count(len(self.actions), "action"),
            count(len(self.observations), "observation"),
            *([f"ensemble of {averaged}"] if averaged > 1 else []),
            f"learned from {count(self.trained_on[0], 'episode')}",
        ]
        return f"<foretell.Model: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        episodes, steps = self.trained_on
        has_linear, averaged = self._native.has_linear, self._native.averaged
        rows: list[tuple[str, object]] = [
            ("learned from", f"{count(episodes, 'episode')}, {count(steps, 'step')}"),
            ("actions", some(self.actions)),
            ("observations", f"{len(self.observations):,}"),
            *((NAMES[member.kind], f"{member.size}, weight {member.weight:.2f}") for member in self.members),
            *([("weights", "follow the episode")] if self._native.memory > 0 else []),
            *([("rank", self.rank)] if has_linear else []),
            ("POMDP", "none" if self.states is None else count(self.states, "state")),
            *([("ensemble", f"{averaged} models")] if averaged > 1 else []),
        ]
        return table("Model", rows, drawing=bars(self.spectrum, self.rank) if has_linear else "")


def _restored(data: bytes, selection: Selection | None = None) -> Model:
    return Model(_native.Model.from_bytes(data), selection)


class Filter:
    """The state of a model during an episode; `Model.filter` makes one.

    Examples
    --------
    >>> import foretell as ft
    >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), mix=0, rank=3, ensemble=2)
    >>> state = model.filter()
    >>> probability = state.update("listen", "growl-left")
    >>> state.state.shape
    (3,)

    Predictions, and their uncertainty:

    >>> next(iter(state.predict("listen")))
    'growl-left'
    >>> state.spread("listen")["growl-left"] < 0.1
    True
    >>> round(float(state.predict_array("listen").sum()) + state.unseen, 9)
    1.0
    >>> [next(iter(step)) for step in state.forecast(["listen", "listen"])]
    ['growl-left', 'growl-left']
    >>> 0.5 < state.probability([("listen", "growl-left")]) < 1
    True
    >>> [len(future) for future in state.sample(["listen", "listen"], n=3, seed=1)]
    [2, 2, 2]

    A copy is independent; an observation may be missing; ``reset`` starts the next episode:

    >>> other = state.copy()
    >>> other.update_missing("open-left")
    >>> bool((other.state == state.state).all())
    False
    >>> state.reset()
    """

    def __init__(
        self, native: _native.Filter, observations: list[str], plain: list[str], encoding: Encoding = Encoding()
    ) -> None:
        self._native = native
        self._observations = observations
        self._plain = plain
        self._encoding = encoding

    @property
    def state(self) -> NDArray[np.float64]:
        """The predictive state, the belief over latent states if the model has a POMDP, or the units
        of a recurrent network if there is nothing else. Empty for an n-gram."""
        return self._native.state_vector

    @property
    def unseen(self) -> float:
        """Probability of observations that were not seen in training."""
        return self._native.unseen

    @property
    def lost(self) -> int:
        """How often the model assigned probability zero to an observation."""
        return self._native.lost

    def copy(self) -> Filter:
        """An independent copy of the state."""
        return Filter(self._native.copy(), self._observations, self._plain, self._encoding)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Filter:
        return self.copy()

    def reset(self, shown: Symbol | None = None) -> None:
        """Starts an episode, with the observation before the first action, if there is one."""
        self._native.reset()
        self._begin(shown)

    def _begin(self, shown: Symbol | None) -> None:
        first = self._encoding.first_action
        if shown is None:
            return
        if first is None:
            raise ValueError("shown: episodes of its logs start with an action, without an observation before it; leave shown out")
        self.update(first, shown, reward=0.0)

    def update(
        self, action: Symbol, observation: Symbol, *, terminated: bool = False, reward: float | None = None
    ) -> float:
        """Updates the state with a step.

        Parameters
        ----------
        action, observation : str, int or tuple
            The action and the observation that followed: symbols, or a measurement if the model has
            a discretiser.
        terminated : bool
            Whether the episode ended.
        reward : float, optional
            The reward, for models whose observations include it.

        Returns
        -------
        float
            The predicted probability of the observation.
        """
        observed = self._encoding.encoded(observation)
        return self._native.update(action, observed, terminated=terminated, reward=reward)

    def update_missing(self, action: Symbol) -> None:
        """Updates the state with an action whose observation is missing."""
        self._native.update_missing(action)

    def predict(self, action: Symbol, *, rewards: bool = False) -> dict[str, float]:
        """Probabilities of the observations after an action, the largest first; with the rewards
        that may be part of them if ``rewards``."""
        return named(self._native.predict(action), self._observations if rewards else self._plain)

    def predict_array(self, action: Symbol) -> NDArray[np.float64]:
        """Probabilities of the observations after an action, in the order of
        `Model.observations`."""
        return self._native.predict(action)

    def spread(self, action: Symbol) -> dict[str, float]:
        """Uncertainty of `predict`: the deviation of the ensemble's models of halves of the logs.
        Empty without an ensemble."""
        self._native.predict(action)
        spread = self._native.spread
        return named(spread, self._observations) if len(spread) else {}

    def forecast(self, actions: Sequence[Symbol], *, rewards: bool = False) -> list[dict[str, float]]:
        """Predicts the observation at each step of a sequence of actions, if the episode has not
        ended before; with the rewards that may be part of observations if ``rewards``."""
        names = self._observations if rewards else self._plain
        return [named(row, names) for row in self._native.forecast(list(actions))]

    def probability(self, test: Sequence[Pair]) -> float:
        """The probability that these pairs come next, given their actions."""
        return self._native.probability([(a, self._encoding.encoded(o), reward) for a, o, reward in map(rewarded, test)])

    def sample(self, actions: Sequence[Symbol], *, n: int = 1, seed: int = 0) -> list[list[str]]:
        """Samples ``n`` sequences of observations that may follow the actions."""
        drawn = self._native.sample(list(actions), n, seed)
        return [[self._observations[o] for o in future] for future in drawn]

    def __repr__(self) -> str:
        return f"<foretell.Filter: state of {len(self.state)} numbers>"
