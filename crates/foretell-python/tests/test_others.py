"""With other packages: scikit-learn, Gymnasium, Minari, matplotlib; and discretisers."""

import pickle
import subprocess
import sys
import textwrap

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import foretell as ft


class Bandit(gymnasium.Env):
    """Of two arms the second always pays."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return 0, {}

    def step(self, action):
        self.t += 1
        return int(action), float(action == 1), False, self.t == 5, {}


def steps_of(logs):
    columns = logs.to_numpy()
    return np.column_stack([columns["episode_id"], columns["action"], columns["observation"]])


class TestSklearn:
    def test_clone_params_and_fit(self):
        from sklearn.base import clone

        X = steps_of(ft.sample("tiger", episodes=200, seed=1))
        model = ft.sklearn.PredictiveStateModel(rank=3, random_state=5)
        assert clone(model).get_params() == model.get_params() and model.set_params(rank=4).rank == 4
        model.fit(X)
        assert model.model_.params["seed"] == 5 and model.score(X) > np.log(1 / 6)
        probabilities = model.predict_proba(X)
        assert probabilities.shape == (len(X), len(model.classes_)) and (probabilities.sum(axis=1) <= 1 + 1e-9).all()
        likely = np.log(probabilities[np.arange(len(X)), [list(model.classes_).index(str(o)) for o in X[:, 2]]])
        assert np.isclose(likely.mean(), model.score(X), atol=1e-9)
        assert set(model.predict(X)) <= set(model.classes_)

    def test_grid_search_with_groups(self):
        from sklearn.model_selection import GridSearchCV, GroupKFold

        X = steps_of(ft.sample("tiger", episodes=200, seed=1))
        grid = GridSearchCV(ft.sklearn.PredictiveStateModel(test_dim=64, history_dim=64), {"rank": [1, 3]}, cv=GroupKFold(3))
        grid.fit(X, groups=X[:, 0])
        assert grid.best_params_ == {"rank": 3}

    def test_parts_add_up(self):
        logs = ft.sample("tiger", episodes=200, seed=1)
        X = steps_of(logs)
        first = X[:, 0] < 100
        parts = ft.sklearn.PredictiveStateModel(rank=3).partial_fit(X[first]).partial_fit(X[~first])
        whole = ft.sklearn.PredictiveStateModel(rank=3).fit(X)
        assert parts.model_.trained_on == whole.model_.trained_on
        assert np.allclose(parts.predict_proba(X[:50]), whole.predict_proba(X[:50]), atol=1e-9)

    def test_frames(self):
        frame = ft.sample("tiger", episodes=100, seed=1).to_pandas()
        model = ft.sklearn.PredictiveStateModel(rank=3).fit(frame)
        assert set(model.model_.actions) == {"listen", "open-left", "open-right"}


class TestGymnasium:
    def test_domains_are_registered_and_pass_the_checker(self):
        for name in ("tiger", "colored-gridworld", "pocman"):
            env = gymnasium.make(f"foretell.gymnasium:foretell/{name}-v0")
            check_env(env.unwrapped, skip_render_check=True)

    def test_models_are_environments(self):
        logs = ft.sample("tiger", episodes=500, seed=1)
        refined = ft.learn(logs, refine=True)
        check_env(ft.gymnasium.ModelEnv(refined), skip_render_check=True)
        linear = ft.learn(logs, rank=3)
        check_env(ft.gymnasium.ModelEnv(linear, reward=lambda a, o: -1.0), skip_render_check=True)
        with pytest.raises(ValueError, match="knows no rewards"):
            ft.gymnasium.ModelEnv(linear)
        # What it shows is what the model predicts.
        drawn = ft.gymnasium.record(ft.gymnasium.ModelEnv(refined), episodes=400, max_steps=10, seed=1)
        rewards = drawn.to_numpy()["reward"]
        true = ft.sample("tiger", episodes=400, max_steps=10, seed=5).to_numpy()["reward"]
        assert abs(rewards.mean() - true.mean()) < 4 * true.std() * np.sqrt(2 / len(true)) + 0.5

    def test_states_replace_observations(self):
        env = gymnasium.make("foretell.gymnasium:foretell/tiger-v0")
        model = ft.learn(ft.gymnasium.record(env, episodes=300, max_steps=20), rank=3)
        wrapped = ft.gymnasium.PredictiveStates(env, model)
        check_env(wrapped, skip_render_check=True)
        state, _ = wrapped.reset(seed=1)
        assert np.array_equal(state, model.initial)

    def test_records_are_what_sampling_gives(self):
        env = gymnasium.make("foretell.gymnasium:foretell/tiger-v0")
        logs = ft.gymnasium.record(env, episodes=50, max_steps=20, seed=1)
        assert len(logs) == 50 and set(logs.actions) == {"listen", "open-left", "open-right"}
        assert logs.summary()["has_action_probabilities"]
        policy = ft.plan(ft.learn(ft.sample("tiger", episodes=500, seed=1), refine=True), ft.sample("tiger", episodes=500, seed=1), discount=0.95)
        here = ft.evaluate(policy, env, episodes=300, max_steps=20, discount=0.95)
        there = ft.evaluate(policy, "tiger", episodes=2000, max_steps=20, discount=0.95)
        assert abs(here.discounted_return - there.discounted_return) < 3 * here.discounted_ci95

    def test_what_reset_shows_answers_the_first_action(self):
        class Echo(gymnasium.Env):
            """Shows a card, asks for it afterwards."""

            observation_space = gymnasium.spaces.MultiDiscrete([2, 2])
            action_space = gymnasium.spaces.Discrete(2)

            def reset(self, *, seed=None, options=None):
                super().reset(seed=seed)
                self.card, self.t = int(self.np_random.integers(2)), 0
                return np.array([self.card, 0]), {}

            def step(self, action):
                self.t += 1
                return np.array([0, 1]), float(action == self.card), self.t == 3, False, {}

        logs = ft.gymnasium.record(Echo(), episodes=400, seed=1)
        episode = next(iter(logs))
        assert [action for action, _, _ in episode][0] == "0" and episode[0][1] in ("0|0", "1|0") and episode[0][2] == 0
        assert len(episode) == 4 and episode[1][1] == "0|1"
        # The card tells nothing of what will be seen, only of what will be earned.
        policy = ft.plan(ft.learn(logs, refine=True, observe_reward=True), logs)
        assert ft.evaluate(policy, Echo(), episodes=100).mean_return > 2.8

    def test_spaces_without_symbols_are_refused(self):
        env = gymnasium.make("CartPole-v1")
        with pytest.raises(ValueError, match="has no symbols; give encode="):
            ft.gymnasium.record(env, episodes=1)
        sampled = np.array([env.observation_space.sample() for _ in range(5)], dtype=float)
        grid = ft.discretise.Uniform(bins=3).fit(np.clip(sampled, -1, 1))
        logs = ft.record(env, episodes=20, encode=grid, seed=1)
        assert len(logs) == 20
        # From here on the discretiser is carried.
        model = ft.learn(logs, rank=5)
        for state in ("memory", "last"):
            policy = ft.plan(model, logs, planner="fitted-q", state=state, rounds=5)
            policy = pickle.loads(pickle.dumps(policy))
            assert ft.evaluate(policy, env, episodes=5, max_steps=10).mean_length > 5
            policy.start().observe(env.reset(seed=1)[0], action="0")
        wrapped = ft.gymnasium.PredictiveStates(env, model)
        assert wrapped.reset(seed=1)[0].shape == (5,)

    def test_an_agent_learns_by_acting(self):
        trained = ft.agent(Bandit(), episodes=60, agent_rounds=2, epsilon=0.2, seed=1)
        assert len(trained.logs) == 60 and len(trained.promised) == 2
        assert trained.policy.start().action == "1"
        late = trained.logs.take(range(30, 60)).to_numpy()
        assert 0.8 < (late["action"][late["step"] > 0] == trained.logs.actions.index("1")).mean() < 1

    def test_what_is_missing_is_named(self):
        """Where a package is not installed, the error says which and how to get it."""
        script = textwrap.dedent(
            """
            import sys
            for name in ("gymnasium", "sklearn", "matplotlib", "pandas", "minari"):
                sys.modules[name] = None
            import foretell as ft
            logs = ft.sample("tiger", episodes=5, seed=1)
            model = ft.learn(logs, rank=1)
            for use in (lambda: ft.gymnasium, lambda: ft.record, lambda: ft.sklearn, model.plot_spectrum, logs.to_pandas,
                        lambda: ft.from_minari("x")):
                try:
                    use()
                except ModuleNotFoundError as error:
                    print(error)
            """
        )
        told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.splitlines()
        assert told == [
            "foretell.gymnasium needs gymnasium: pip install 'foretell[gymnasium]'",
            "foretell.record needs gymnasium: pip install 'foretell[gymnasium]'",
            "foretell.sklearn needs scikit-learn: pip install 'foretell[sklearn]'",
            "foretell.plot needs matplotlib: pip install 'foretell[plot]'",
            "Logs.to_pandas needs pandas: pip install pandas",
            "from_minari needs minari: pip install 'foretell[minari]'",
        ]


class TestDiscretise:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 2)) * [1, 10]

    @pytest.mark.parametrize("made", [ft.discretise.Uniform(4), ft.discretise.Quantile([3, 5]), ft.discretise.KMeans(6)])
    def test_cells_hold_their_middles(self, made):
        symbols = made.fit_transform(self.X, columns=["speed", "angle"])
        for symbol in set(symbols.tolist()):
            assert made(made.inverse(symbol)) == symbol
            assert "speed" in made.describe(symbol)
        again = ft.discretise.from_dict(made.to_dict())
        assert (again.transform(self.X) == symbols).all()
        assert "?" in made([np.nan, 0.0])

    def test_quantiles_are_alike_and_edges_wide(self):
        made = ft.discretise.Quantile(5).fit(self.X[:, :1])
        counts = np.unique(made.transform(self.X[:, :1]), return_counts=True)[1]
        assert counts.max() - counts.min() <= 1
        assert made([1e9]) == "4" and made([-1e9]) == "0"

    def test_models_carry_them(self, tmp_path):
        steps = 600
        phase = np.arange(steps) % 4
        measured = np.stack([np.sin(phase * np.pi / 2), np.cos(phase * np.pi / 2)], axis=1) + 0.01 * self.X[:steps % 500 + 500][:1]
        logs = ft.from_numpy(
            ["go"] * steps, measured, episodes=np.arange(steps) // 20, discretiser=ft.discretise.KMeans(4)
        )
        model = ft.learn(logs, rank=4)
        model.save(tmp_path / "model.safetensors")
        again = ft.Model.load(tmp_path / "model.safetensors")
        state = again.filter()
        state.update("go", measured[0])
        symbol = next(iter(state.predict("go")))
        assert np.allclose(again.discretiser.inverse(symbol), measured[1], atol=1e-9)
        assert ft.refine(again, logs).discretiser is not None

    def test_what_is_wrong_is_said(self):
        with pytest.raises(ValueError, match="fit it first"):
            ft.discretise.Uniform(2).transform([[1.0]])
        with pytest.raises(ValueError, match="must be at least 1"):
            ft.discretise.Uniform(0)
        with pytest.raises(ValueError, match="fitted on 2"):
            ft.discretise.Uniform(2).fit(self.X).transform([[1.0]])


def test_minari_both_ways(tmp_path, monkeypatch):
    import minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    logs = ft.sample("tiger", episodes=10, max_steps=5, seed=1)
    dataset = ft.to_minari(logs, "test/tiger-v0", description="listening")
    again = ft.from_minari(minari.load_dataset("test/tiger-v0"))
    assert len(dataset) == 10 and len(again) == 10
    numbers = [[(logs.actions.index(a), logs.observations.index(o), r) for a, o, r in episode] for episode in logs]
    assert [[(int(a), int(o.removesuffix(" [end]")), r) for a, o, r in episode] for episode in again] == numbers


def test_plots():
    import matplotlib

    matplotlib.use("Agg")
    logs = ft.sample("tiger", episodes=200, seed=1)
    model = ft.learn(logs, rank=3)
    assert model.plot_spectrum().get_ylabel() == "singular value"
    score = ft.score(model, logs, truth="tiger")
    labels = ft.plot.likelihood({"rank 3": score}).get_legend_handles_labels()[1]
    assert labels[:2] == ["rank 3", "exact model"]
    policy = ft.plan(model, logs, discount=0.95)
    axes = ft.plot.returns({"ours": ft.evaluate(policy, "tiger", episodes=100)}, discounted=True)
    assert len(axes.patches) == 1
