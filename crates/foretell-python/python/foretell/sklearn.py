"""A model as a scikit-learn estimator, for pipelines, searches and cross-validation."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from foretell._data import from_numpy, from_pandas
from foretell._learning import learn, score, update
from foretell._logs import Logs
from foretell._model import Model
from foretell._options import Preset, Projection
from foretell._selection import Effort, Kind

__all__ = ["PredictiveStateModel"]

_OTHERS = ("preset", "refine", "effort", "only", "mix", "random_state")


class PredictiveStateModel(BaseEstimator):
    """Predicts the next observation; learned from steps of episodes.

    ``X`` has one row for each step: `Logs`, a pandas DataFrame with the same columns as log files
    (``episode_id``, ``action``, ``observation`` and others), or an array whose columns are episode,
    action and observation (several columns form one symbol). Rows of an episode are contiguous.
    Cross-validation must not split episodes, so give them as groups: ``GridSearchCV(model, grid,
    cv=GroupKFold()).fit(X, groups=X[:, 0])``.

    Parameters are those of `foretell.learn`; ``random_state`` is its seed. By default `fit` selects
    the predictors, whereas `partial_fit` learns a linear model.

    Attributes
    ----------
    model_ : Model
        The learned model.
    classes_ : array of str
        Names of the observations, in the order of `predict_proba`.
    n_features_in_ : int
        Number of columns of ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> import foretell as ft
    >>> columns = ft.sample("tiger", episodes=300, seed=1).to_numpy()
    >>> X = np.column_stack([columns["episode_id"], columns["action"], columns["observation"]])
    >>> model = ft.sklearn.PredictiveStateModel(mix=0, rank=3).fit(X)
    >>> model.predict_proba(X).shape == (len(X), len(model.classes_))
    True
    >>> set(model.predict(X)) <= set(model.classes_)
    True
    >>> bool(model.score(X) > np.log(1 / 2))  # better than guessing
    True

    Episodes that are added later:

    >>> model = ft.sklearn.PredictiveStateModel(rank=3).partial_fit(X[X[:, 0] < 100]).partial_fit(X[X[:, 0] >= 100])
    >>> model.model_.trained_on[0]
    300
    """

    def __init__(
        self,
        *,
        preset: Preset = "default",
        refine: bool = False,
        effort: Effort = "normal",
        only: Kind | None = None,
        test_projection: Projection | None = None,
        history_projection: Projection | None = None,
        test_dim: int | None = None,
        history_dim: int | None = None,
        max_test_length: int | None = None,
        history: Literal["prefix", "suffix"] | None = None,
        history_length: int | None = None,
        cuts: Literal["complete", "ragged"] | None = None,
        start: Literal["fixed", "mixed"] | None = None,
        rank: int | None = None,
        tolerance: float | None = None,
        regression: Literal["pseudo-inverse", "two-stage"] | None = None,
        whitening_ridge: float | None = None,
        ridge: float | None = None,
        floor: float | None = None,
        ngram_length: int | None = None,
        mix: float | None = None,
        observe_reward: bool | None = None,
        weighting: Literal["none", "next", "propensity"] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.preset = preset
        self.refine = refine
        self.effort = effort
        self.only = only
        self.test_projection = test_projection
        self.history_projection = history_projection
        self.test_dim = test_dim
        self.history_dim = history_dim
        self.max_test_length = max_test_length
        self.history = history
        self.history_length = history_length
        self.cuts = cuts
        self.start = start
        self.rank = rank
        self.tolerance = tolerance
        self.regression = regression
        self.whitening_ridge = whitening_ridge
        self.ridge = ridge
        self.floor = floor
        self.ngram_length = ngram_length
        self.mix = mix
        self.observe_reward = observe_reward
        self.weighting = weighting
        self.random_state = random_state

    def _logs(self, X: Any) -> Logs:
        if isinstance(X, Logs):
            return X
        if hasattr(X, "columns"):
            return from_pandas(X)
        array = np.asarray(X)
        if array.ndim != 2 or array.shape[1] < 3:
            raise ValueError(f"X has shape {array.shape}; give a 2-D array with columns for episode, action and observation")
        observations = array[:, 2] if array.shape[1] == 3 else array[:, 2:]
        return from_numpy(array[:, 1], observations, episodes=array[:, 0])

    def _learned(self, logs: Logs, mix: float | None, keep_moments: bool) -> Model:
        params = {name: value for name, value in self.get_params().items() if name not in _OTHERS}
        return learn(
            logs,
            preset=self.preset,
            refine=self.refine,
            effort=self.effort,
            only=self.only,
            mix=mix,
            keep_moments=keep_moments,
            seed=self.random_state,
            progress=False,
            **params,
        )

    def _fitted(self, model: Model, X: Any) -> Self:
        self.model_ = model
        self.classes_ = np.array(model.observations)
        self.n_features_in_ = 3 if isinstance(X, Logs) else np.shape(X)[1]
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learns from steps; ``y`` is ignored."""
        return self._fitted(self._learned(self._logs(X), self.mix, keep_moments=False), X)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Adds other episodes to the training data so far.

        The model is a linear one, as with ``mix=0``: n-grams, POMDPs and mixtures need all logs at
        once. Use `fit` for these, or refine the final model with `foretell.refine`.
        """
        if self.refine:
            raise ValueError("refine=True needs all logs at once; use fit, or refine the final model with foretell.refine")
        if self.only not in (None, "linear"):
            raise ValueError(f'only="{self.only}" needs all logs at once; use fit')
        logs = self._logs(X)
        known = getattr(self, "model_", None)
        if known is None or known.moments is None:
            mix = 0.0 if self.mix is None else self.mix
            return self._fitted(self._learned(logs, mix, keep_moments=True), X)
        return self._fitted(update(known, logs, progress=False), X)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of a step, nats: higher is better."""
        check_is_fitted(self)
        return score(self.model_, self._logs(X)).per_step

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """For each step the probabilities of observations, given its action and the earlier steps
        of its episode.

        The remainder to 1 is for observations that were not seen in training.
        """
        check_is_fitted(self)
        logs = self._logs(X)
        columns = logs.to_numpy()
        actions, observations = logs.actions, logs.observations
        known = set(self.model_.actions)
        unknown = [name for name in actions if name not in known]
        if unknown:
            raise ValueError(f"action {unknown[0]!r} was not seen in training; known: {', '.join(self.model_.actions[:12])}")
        rows = np.empty((len(columns["action"]), len(self.classes_)))
        state = self.model_.filter()
        rewards = columns["reward"] if self.model_._native.observes_rewards else None
        for i, (a, o, t) in enumerate(zip(columns["action"], columns["observation"], columns["step"])):
            if t == 0:
                state.reset()
            rows[i] = state.predict_array(actions[a])
            reward = None if rewards is None else float(rewards[i])
            state.update(actions[a], observations[o], reward=reward)
        return rows

    def predict(self, X: Any) -> NDArray[np.str_]:
        """For each step the most likely observation, given its action and the earlier steps of its
        episode."""
        probabilities = self.predict_proba(X)
        predicted: NDArray[np.str_] = self.classes_[probabilities.argmax(axis=1)]
        return predicted
