"""Other packages on the same logs, each in a virtual environment of its own.

    python benchmarks/peers.py [--episodes 2000] [--seeds 3] [--offline-rl] [--into target/peers]

Needs the Python package (`make python`, then `target/python/bin/python benchmarks/peers.py`). A peer that does not install is skipped, and
said to be. Logs are random walks in ColoredGridWorld.

Prediction: the mean log-likelihood of all observations of held-out episodes of full length given their actions, nats; who does not know
what an action is, is conditioned on it. `--offline-rl` compares policies instead: the discounted return in the maze.
"""

import argparse
import json
import subprocess
import time
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np

import foretell as ft

DOMAIN = "colored-gridworld"
# Peers, what they need, and the part of this folder that runs them.
PREDICTORS = {
    "hmmlearn": (["hmmlearn==0.3.3", "numpy==2.4.6"], "peer_hmmlearn.py"),
    "scikit-splearn": (["scikit-splearn==1.2.1", "numpy==1.26.4", "setuptools<81"], "peer_splearn.py"),
}
PLANNERS = {"d3rlpy": (["d3rlpy==2.8.1"], "peer_d3rlpy.py")}
# The peer that lets its policies act needs our mazes.
WHEELS = Path(__file__).parents[1] / "target" / "wheels"


class Table:
    """What came out: for each seed and method a number, and seconds where it took any."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, float]] = []

    def add(self, name: str, value: float, seconds: float = float("nan")) -> None:
        self.rows.append((name, value, seconds))
        print(f"  {name}: {value:.3f}" + ("" if np.isnan(seconds) else f", {seconds:.2f} s"), flush=True)

    def show(self) -> None:
        print("\n| | mean | least | seconds |\n|---|---|---|---|")
        for name in dict.fromkeys(name for name, _, _ in self.rows):
            values = np.array([value for other, value, _ in self.rows if other == name])
            seconds = np.array([seconds for other, _, seconds in self.rows if other == name])
            took = "" if np.isnan(seconds).all() else f"{seconds.mean():.2f}"
            print(f"| {name} | {values.mean():.3f} | {values.min():.3f} | {took} |")


def timed(work: Callable[[], ft.Model]) -> tuple[ft.Model, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def whole(logs: ft.Logs) -> ft.Logs:
    """The episodes that were cut, not ended: all are of the same length."""
    columns = logs.to_numpy()
    return logs.take(columns["episode_id"][columns["truncated"]])


def arrays(logs: ft.Logs, actions: list[str], observations: list[str]) -> dict[str, list[float]]:
    """Columns of the logs, with actions and observations as numbers of a common alphabet."""
    columns = logs.to_numpy()
    action = np.array([actions.index(name) for name in logs.actions])
    observation = np.array([observations.index(name) for name in logs.observations])
    return {
        "episode": columns["episode_id"].tolist(),
        "action": action[columns["action"]].tolist(),
        "observation": observation[columns["observation"]].tolist(),
        "reward": columns["reward"].tolist(),
        "terminated": columns["terminated"].tolist(),
        "truncated": columns["truncated"].tolist(),
    }


def environment(name: str, requirements: list[str], into: Path) -> Path | None:
    """The Python of a peer's environment, or nothing if it does not install."""
    folder = into / name
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        run = subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], capture_output=True, text=True)
        if run.returncode:
            problem = [line for line in run.stderr.splitlines() if "ERROR" in line or "error" in line] or [""]
            print(f"{name}: skipped, it does not install here ({problem[-1].strip()[:160]})")
            return None
        (folder / "installed").touch()
    return python


def ask(peers: dict[str, tuple[list[str], str]], data: Path, into: Path) -> list[dict]:
    """What the peers say of the logs in a file."""
    told = []
    for peer, (requirements, script) in peers.items():
        python = environment(peer, requirements, into)
        if python is None:
            continue
        run = subprocess.run([python, Path(__file__).parent / script, data], capture_output=True, text=True)
        if run.returncode:
            print(f"{peer}: failed ({run.stderr.strip().splitlines()[-1][:200]})")
        told += [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return told


def write(path: Path, seed: int, training: ft.Logs, test: ft.Logs) -> Path:
    """The logs as the peers read them."""
    actions = sorted(set(training.actions) | set(test.actions))
    observations = sorted(set(training.observations) | set(test.observations))
    parts = {name: arrays(logs, actions, observations) for name, logs in [("training", training), ("test", test)]}
    about = {"domain": DOMAIN, "seed": seed, "action_names": actions, "observation_names": observations}
    path.write_text(json.dumps({**about, **parts}))
    return path


def predictions(seed: int, training: ft.Logs, into: Path, table: Table) -> None:
    test = whole(ft.sample(DOMAIN, episodes=2000, seed=1000 + seed))

    def scored(name: str, work: Callable[[], ft.Model]) -> ft.Score:
        model, seconds = timed(work)
        score = ft.score(model, test, truth=DOMAIN)
        table.add(name, score.horizons[-1].log_likelihood, seconds)
        return score

    scored("foretell, refined", lambda: ft.learn(training, refine=True, seed=seed))
    score = scored("foretell, linear", lambda: ft.learn(training, seed=seed))
    for states in (60, 100):
        name = f"EM of foretell from a random start, {states} states"
        scored(name, lambda: ft.learn(training, refine=True, layout="dense", states=states, seed=seed))
    best = max(score.baselines, key=lambda name: score.baselines[name][-1].log_likelihood)
    table.add("the best n-gram", score.baselines[best][-1].log_likelihood)
    table.add("the exact model", score.truth[-1].log_likelihood)
    for told in ask(PREDICTORS, write(into / f"logs-{seed}.json", seed, training, test), into):
        table.add(told["name"], told["log_likelihood"], told["seconds"])


def policies(seed: int, training: ft.Logs, into: Path, table: Table) -> None:
    for name, refine in [("foretell, refined", True), ("foretell, fitted-Q", False)]:
        started = time.perf_counter()
        policy = ft.plan(ft.learn(training, refine=refine, rank=20, seed=seed), training, seed=seed)
        seconds = time.perf_counter() - started
        table.add(name, ft.evaluate(policy, DOMAIN, episodes=5000, seed=seed).discounted_return, seconds)
    wheel = [str(path) for path in WHEELS.glob("*.whl")]
    peers = {name: ([*requirements, *wheel], script) for name, (requirements, script) in PLANNERS.items()}
    for told in ask(peers, write(into / f"logs-{seed}.json", seed, training, training.take([0])), into):
        table.add(told["name"], told["return"], told["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--offline-rl", action="store_true", help="compare policies with d3rlpy's; fetches gigabytes of torch")
    parser.add_argument("--into", type=Path, default=Path("target/peers"))
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    table = Table()
    for seed in range(1, arguments.seeds + 1):
        print(f"seed {seed}")
        training = ft.sample(DOMAIN, episodes=arguments.episodes, seed=seed)
        (policies if arguments.offline_rl else predictions)(seed, training, arguments.into, table)
    table.show()


if __name__ == "__main__":
    main()
