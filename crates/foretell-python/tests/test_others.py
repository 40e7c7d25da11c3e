"""With other packages: scikit-learn, Gymnasium, Minari, matplotlib; and discretisers."""

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import foretell as ft


class Game(gymnasium.Env):
    """Five steps in which nothing but the action is seen; those below say what is earned."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)
    length = 5

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return 0, {}

    def step(self, action):
        self.t += 1
        return self.shown(int(action)), float(action == 1), False, self.t == self.length, {}

    def shown(self, action):
        return action


class Coin(Game):
    """Shows a fair coin, whatever is done."""

    length = 10

    def shown(self, action):
        return int(self.np_random.integers(2))


class Pushes(gymnasium.Env):
    """Stopping pays after exactly two pushes; what is shown is always the same."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.pushes = 0
        return 0, {}

    def step(self, action):
        if action == 1:
            return 0, float(self.pushes == 2), True, False, {}
        self.pushes += 1
        return 0, 0.0, False, self.pushes == 6, {}


def steps_of(logs):
    columns = logs.to_numpy()
    return np.column_stack([columns["episode_id"], columns["action"], columns["observation"]])


class TestSklearn:
    def test_clone_params_and_fit(self):
        from sklearn.base import clone

        X = steps_of(ft.sample("tiger", episodes=200, seed=1))
        model = ft.sklearn.PredictiveStateModel(mix=0, rank=3, random_state=5)
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
        grid = GridSearchCV(ft.sklearn.PredictiveStateModel(mix=0, test_dim=64, history_dim=64), {"rank": [1, 3]}, cv=GroupKFold(3))
        grid.fit(X, groups=X[:, 0])
        assert grid.best_params_ == {"rank": 3}

    def test_parts_add_up(self):
        logs = ft.sample("tiger", episodes=200, seed=1)
        X = steps_of(logs)
        first = X[:, 0] < 100
        parts = ft.sklearn.PredictiveStateModel(rank=3).partial_fit(X[first])
        assert parts.model_.selection is None and parts.model_.members == [ft.Member("linear", "rank 3", 1.0)]
        parts.partial_fit(X[~first])
        whole = ft.sklearn.PredictiveStateModel(mix=0, rank=3).fit(X)
        assert parts.model_.trained_on == whole.model_.trained_on
        assert np.allclose(parts.predict_proba(X[:50]), whole.predict_proba(X[:50]), atol=1e-9)
        with pytest.raises(ValueError, match='only="latent" needs all logs at once; use fit'):
            ft.sklearn.PredictiveStateModel(only="latent").partial_fit(X)

    def test_predictors_are_selected_by_default(self):
        logs = ft.sample("tiger", episodes=50, seed=1)
        X = steps_of(logs)
        for given in ({}, {"effort": "quick"}, {"only": "ngram"}):
            fitted = ft.sklearn.PredictiveStateModel(**given).fit(X).model_
            assert fitted.selection is not None and fitted.selection.effort == given.get("effort", "normal")
            assert {candidate.kind for candidate in fitted.selection.tried} >= {given.get("only", "linear")}

    def test_what_was_never_fitted_says_so(self):
        from sklearn.exceptions import NotFittedError

        with pytest.raises(NotFittedError):
            ft.sklearn.PredictiveStateModel().predict([[0, 0, 0]])
        logs = ft.sample("tiger", episodes=50, seed=1)
        assert ft.sklearn.PredictiveStateModel(mix=0, rank=2).fit(logs).score(logs) > np.log(1 / 6)

    def test_frames(self):
        frame = ft.sample("tiger", episodes=100, seed=1).to_pandas()
        model = ft.sklearn.PredictiveStateModel(mix=0, rank=3).fit(frame)
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
        linear = ft.learn(logs, mix=0, rank=3)
        check_env(ft.gymnasium.ModelEnv(linear, reward=lambda a, o: -1.0), skip_render_check=True)
        with pytest.raises(ValueError, match="has no rewards"):
            ft.gymnasium.ModelEnv(linear)
        # What it shows is what the model predicts.
        drawn = ft.gymnasium.record(ft.gymnasium.ModelEnv(refined), episodes=400, max_steps=10, seed=1)
        rewards = drawn.to_numpy()["reward"]
        true = ft.sample("tiger", episodes=400, max_steps=10, seed=5).to_numpy()["reward"]
        assert abs(rewards.mean() - true.mean()) < 4 * true.std() * np.sqrt(2 / len(true)) + 0.5

    def test_states_replace_observations(self):
        env = gymnasium.make("foretell.gymnasium:foretell/tiger-v0")
        model = ft.learn(ft.gymnasium.record(env, episodes=300, max_steps=20), mix=0, rank=3)
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
        # The card is informative about rewards only, not about observations.
        policy = ft.plan(ft.learn(logs, refine=True, observe_reward=True), logs)
        assert ft.evaluate(policy, Echo(), episodes=100).mean_return > 2.8

    def test_random_actions_are_not_those_of_the_environment(self):
        columns = ft.record(Coin(), episodes=500, seed=1).to_numpy()
        taken = columns["step"] > 0
        same = (columns["action"] == columns["observation"])[taken].mean()
        assert abs(same - 0.5) < 4 * 0.5 / np.sqrt(taken.sum())

    def test_what_is_shown_first_is_not_chosen_by_the_policy(self):
        logs = ft.record(Game(), episodes=300, seed=1)
        assert logs.first_action == "0" and (logs.to_numpy()["action_prob"] == 0.5).all()
        model = ft.learn(logs, refine=True)
        policy = ft.plan(model, logs, discount=0.5)
        best = 2 - 2**-4  # 1 + ½ + … in five steps
        assert np.isclose(ft.evaluate(policy, Game(), episodes=5).discounted_return, best)
        by_logs = ft.evaluate(policy, logs, episodes=200)
        assert np.isclose(by_logs["fqe"].value, best, atol=0.02) and np.isclose(by_logs["model"].value, best, atol=0.02)
        assert np.isclose(by_logs.logged.value, best / 2, atol=0.15)
        assert 0.4 < by_logs.support["same_action"] < 0.6 and by_logs.max_steps == 5
        two = ft.evaluate(policy, logs, episodes=200, max_steps=2)
        assert np.isclose(two["fqe"].value, 1.5, atol=0.02) and two.max_steps == 2
        with pytest.raises(ValueError, match="give it as shown"):
            policy.start()
        assert model.filter(0).state.shape == model.filter().state.shape
        env = ft.gymnasium.ModelEnv(model)
        check_env(env, skip_render_check=True)
        assert env.reset(seed=1)[0] == 0 and env.observation_space.n == 2
        again = pickle.loads(pickle.dumps(logs))
        assert list(again) == list(logs) and again.first_action == "0" and again.actions == logs.actions

    def test_policies_know_whether_something_is_shown_first(self):
        """By hand, from logs that leave out what was shown first, and from those that have it."""
        recorded = ft.record(Pushes(), episodes=500, seed=1)
        columns = recorded.to_numpy()
        later = columns["step"] > 0
        plain = ft.from_numpy(
            columns["action"][later],
            np.zeros(later.sum(), dtype=int),
            columns["reward"][later],
            episodes=columns["episode_id"][later],
            terminated=columns["terminated"][later],
            truncated=columns["truncated"][later],
        )
        for logs in (recorded, plain):
            policy = ft.plan(ft.learn(logs, refine=True), logs)
            assert ft.evaluate(policy, Pushes(), episodes=20).mean_return == 1
            env = Pushes()
            shown, _ = env.reset()
            run = policy.start(shown) if policy.first_action is not None else policy.start()
            earned, ended = 0.0, False
            while not ended:
                observation, reward, terminated, truncated, _ = env.step(int(run.action))
                run.observe(observation, terminated=terminated)
                earned, ended = earned + reward, terminated or truncated
            assert earned == 1

    def test_actions_that_were_never_taken_are_known(self):
        class Many(Game):
            action_space = gymnasium.spaces.MultiDiscrete([6, 7])

            def shown(self, action):
                return 0

            def step(self, action):
                self.t += 1
                return 0, float(action[0] == 1), False, self.t == self.length, {}

        trained = ft.agent(Many(), episodes=8, agent_rounds=2, epsilon=0.5, seed=1)
        assert len(trained.logs.actions) == 42 and trained.logs.actions[:2] == ["0|0", "0|1"]

    def test_functions_make_symbols_too(self):
        env = gymnasium.make("CartPole-v1")

        def leaning(shown):
            return "left" if shown[2] < 0 else "right"

        logs = ft.record(env, episodes=60, encode=leaning, seed=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # constant rewards are informative where episodes end
            policy = ft.plan(ft.learn(logs), logs)
        earned = ft.evaluate(policy, env, episodes=30, encode=leaning)
        assert earned.mean_return > logs.to_numpy()["reward"].sum() / len(logs)
        assert len(ft.agent(env, episodes=4, agent_rounds=2, encode=leaning, max_steps=20).logs) == 4

    def test_environments_survive_pickles(self):
        env = pickle.loads(pickle.dumps(ft.gymnasium.DomainEnv("tiger")))
        assert env.reset(seed=1)[0] == ft.gymnasium.DomainEnv("tiger").reset(seed=1)[0]
        assert pickle.loads(pickle.dumps(ft.Domain("tiger"))).actions == env.action_names

    def test_what_is_no_environment_is_reported(self):
        for call, said in [
            (lambda: ft.record("CartPole-v1"), "a str is not a gymnasium.Env; give gymnasium.make"),
            (lambda: ft.record(gymnasium.make_vec("CartPole-v1", 2)), "not a vector"),
            (lambda: ft.record(Game(), 10), "episodes=10"),
        ]:
            with pytest.raises(TypeError, match=said):
                call()
        with pytest.raises(ValueError, match="episodes = 0: must be at least 1"):
            ft.record(Game(), episodes=0)
        policy = ft.plan(ft.learn(ft.sample("tiger", episodes=50, seed=1), mix=0, rank=2), ft.sample("tiger", episodes=50, seed=1), rounds=2)
        with pytest.raises(ValueError, match="the policy may take the action 'listen'; the environment has 0, 1"):
            ft.evaluate(policy, Game(), episodes=1)

    def test_spaces_without_symbols_are_refused(self):
        env = gymnasium.make("CartPole-v1")
        with pytest.raises(ValueError, match="is not discrete; give encode="):
            ft.gymnasium.record(env, episodes=1)
        sampled = np.array([env.observation_space.sample() for _ in range(5)], dtype=float)
        grid = ft.discretise.Uniform(bins=3).fit(np.clip(sampled, -1, 1))
        logs = ft.record(env, episodes=20, encode=grid, seed=1)
        assert len(logs) == 20
        # From here on the discretiser is carried.
        model = ft.learn(logs, mix=0, rank=5)
        for state in ("memory", "last"):
            policy = ft.plan(model, logs, planner="fitted-q", state=state, rounds=5)
            policy = pickle.loads(pickle.dumps(policy))
            assert ft.evaluate(policy, env, episodes=5, max_steps=10).mean_length > 5
            policy.start(env.reset(seed=1)[0]).observe(env.reset(seed=1)[0], action="0")
        wrapped = ft.gymnasium.PredictiveStates(env, model)
        assert wrapped.reset(seed=1)[0].shape == (5,)

    def test_an_agent_learns_by_acting(self):
        trained = ft.agent(Game(), episodes=60, agent_rounds=2, epsilon=0.2, discount=0.5, seed=1)
        assert len(trained.logs) == 60
        assert trained.policy.start(0).action == "1"
        assert np.allclose(trained.promised, 2, atol=0.1)  # Σ 2⁻ᵗ, as if episodes were never cut
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
            model = ft.learn(logs, mix=0, rank=1)
            for use in (lambda: ft.gymnasium, lambda: ft.record, lambda: ft.sklearn, model.plot_spectrum, logs.to_pandas,
                        lambda: ft.from_minari("x")):
                try:
                    use()
                except ModuleNotFoundError as error:
                    print(error)
            """
        )
        reported = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.splitlines()
        assert reported == [
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

    def test_quantiles_have_equal_counts_and_outer_cells_are_open(self):
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
        model = ft.learn(logs, mix=0, rank=4)
        model.save(tmp_path / "model.safetensors")
        again = ft.Model.load(tmp_path / "model.safetensors")
        state = again.filter()
        state.update("go", measured[0])
        symbol = next(iter(state.predict("go")))
        assert np.allclose(again.discretiser.inverse(symbol), measured[1], atol=1e-9)
        assert ft.refine(again, logs).discretiser is not None

    def test_cells_may_end_an_episode(self):
        grid, cells = ft.discretise.Uniform(2).fit([[0.0], [1.0]]), ft.discretise.KMeans(2).fit([[0.0], [1.0]])
        assert grid.describe("1 [end]") == grid.describe("1") and cells.inverse("1 [end]") == 1
        with pytest.raises(ValueError, match="is not a symbol of this discretiser"):
            cells.inverse("2")

    def test_centres_far_from_zero_and_numbers_of_numpy(self):
        far = 1e9 + np.repeat([0.0, 5.0], 50)[:, None] + self.rng.normal(size=(100, 1)) * 0.1
        symbols = ft.discretise.KMeans(np.int64(2)).fit_transform(far)
        assert len(set(symbols[:50])) == len(set(symbols[50:])) == 1 and symbols[0] != symbols[-1]
        same = ft.discretise.KMeans(5).fit(np.full((10, 1), 1e15) + np.arange(10)[:, None] * 1e-3)
        assert len(same.centres) >= 1
        json.dumps(ft.discretise.Uniform(np.int64(2)).fit([[0.0]]).to_dict())

    def test_names_of_a_frame_are_kept(self):
        import pandas

        frame = pandas.DataFrame({"depth": [0.0, 1.0], "speed": [2.0, 3.0]})
        assert ft.discretise.Uniform(2).fit(frame).columns == ["depth", "speed"]

    def test_different_ones_do_not_mix(self):
        def logs(made):
            return ft.from_numpy(["go"] * 20, np.linspace(0, 1, 20), discretiser=made)

        grid = ft.discretise.Uniform(2)
        first, second = logs(grid), logs(ft.discretise.Quantile(3))
        assert len(first + logs(ft.discretise.Uniform(2))) == 2
        with pytest.raises(ValueError, match="mapped to symbols in different ways"):
            first + second
        with pytest.raises(ValueError, match="mapped to symbols in different ways"):
            ft.update(ft.learn(first, mix=0, rank=1, keep_moments=True), second)
        grid.fit([[100.0], [200.0]])
        assert first.discretiser([0.9]) == "1"

    def test_what_is_wrong_is_said(self):
        with pytest.raises(ValueError, match="fit it first"):
            ft.discretise.Uniform(2).transform([[1.0]])
        with pytest.raises(ValueError, match="must be at least 1"):
            ft.discretise.Uniform(0)
        with pytest.raises(ValueError, match="fitted on 2"):
            ft.discretise.Uniform(2).fit(self.X).transform([[1.0]])


def test_minari_both_ways():
    import minari

    logs = ft.sample("tiger", episodes=10, max_steps=5, seed=1)
    dataset = ft.to_minari(logs, "test/tiger-v0", description="listening")
    again = ft.from_minari(minari.load_dataset("test/tiger-v0"))
    assert len(dataset) == 10 and len(again) == 10
    numbers = [[(logs.actions.index(a), logs.observations.index(o), r) for a, o, r in episode] for episode in logs]
    assert [[(int(a), int(o.removesuffix(" [end]")), r) for a, o, r in episode] for episode in again] == numbers


def test_minari_keeps_what_is_shown_first():
    logs = ft.record(Coin(), episodes=10, seed=1)
    dataset = ft.to_minari(logs, "test/coin-v0")
    again = ft.from_minari(dataset)
    assert again.first_action == "0" and dataset.total_steps == 100

    def numbers(logs):
        return [[(int(a), int(o), r) for a, o, r in episode] for episode in logs]

    order = [logs.observations.index(name) for name in ("0", "1")]
    assert numbers(again) == [[(a, order[o], r) for a, o, r in episode] for episode in numbers(logs)]


def test_plots():
    import matplotlib

    matplotlib.use("Agg")
    logs = ft.sample("tiger", episodes=200, seed=1)
    model = ft.learn(logs, mix=0, rank=3)
    assert model.plot_spectrum().get_ylabel() == "singular value"
    score = ft.score(model, logs, truth="tiger")
    labels = ft.plot.likelihood({"rank 3": score}).get_legend_handles_labels()[1]
    assert labels[:2] == ["rank 3", "exact model"]
    policy = ft.plan(model, logs, discount=0.95)
    axes = ft.plot.returns({"ours": ft.evaluate(policy, "tiger", episodes=100)}, discounted=True)
    assert len(axes.patches) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_learns_with_threads_of_its_own():
    logs = ft.sample("tiger", episodes=200, seed=1)
    expected = ft.learn(logs, mix=0, rank=3).predict(action="listen")
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a process with threads is forked
        child = os.fork()
    if child == 0:
        try:
            found = ft.learn(logs, mix=0, rank=3).predict(action="listen")
            os.write(write, b"same" if found == expected else b"other")
        finally:
            os._exit(0)
    os.close(write)
    deadline = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child waits for threads that it does not have")
        time.sleep(0.01)
    assert os.read(read, 10) == b"same"
