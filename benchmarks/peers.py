"""Other packages on the same logs: held-out log-likelihood and time, each peer in a virtual environment of its own.

    python benchmarks/peers.py [--episodes 2000] [--into target/peers]

Needs the Python package (`make python`). A peer that does not install is skipped, and said to be. Logs are ColoredGridWorld's; the score is
the mean log-likelihood of all observations of a held-out episode given its actions, nats, so that all that do not see actions must be
conditioned on them.
"""

import argparse
import json
import subprocess
import sys
import time
import venv
from pathlib import Path

import numpy as np

import foretell as ft

# Peers, what they need, and the part of this folder that runs them.
PEERS = {
    "hmmlearn": (["hmmlearn==0.3.3", "numpy<3"], "peer_hmmlearn.py"),
    "scikit-splearn": (["scikit-splearn==1.2.1", "numpy<2", "setuptools<81"], "peer_splearn.py"),
}


def arrays(logs: ft.Logs, actions: list[str], observations: list[str]) -> dict[str, list[int]]:
    """Episodes, actions and observations as numbers of a common alphabet."""
    columns = logs.to_numpy()
    action = [actions.index(name) for name in logs.actions]
    observation = [observations.index(name) for name in logs.observations]
    return {
        "episode": columns["episode_id"].tolist(),
        "action": np.array(action)[columns["action"]].tolist(),
        "observation": np.array(observation)[columns["observation"]].tolist(),
    }


def environment(name: str, requirements: list[str], into: Path) -> Path | None:
    """The Python of a peer's environment, or nothing if it does not install."""
    folder = into / name
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        run = subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], capture_output=True, text=True)
        if run.returncode:
            print(f"{name}: skipped, it does not install here ({run.stderr.strip().splitlines()[-1][:120]})")
            return None
        (folder / "installed").touch()
    return python


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--into", type=Path, default=Path("target/peers"))
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[int, str, float, float]] = []
    for seed in range(1, arguments.seeds + 1):
        training = ft.sample("colored-gridworld", episodes=arguments.episodes, seed=seed)
        test = ft.sample("colored-gridworld", episodes=1000, seed=100 + seed)

        def scored(name: str, learned) -> None:
            started = time.perf_counter()
            model = learned()
            seconds = time.perf_counter() - started
            rows.append((seed, name, ft.score(model, test).horizons[-1].log_likelihood, seconds))

        scored("foretell, linear", lambda: ft.learn(training))
        scored("foretell, refined", lambda: ft.learn(training, refine=True))
        score = ft.score(ft.learn(training), test, truth="colored-gridworld")
        best = max(score.baselines, key=lambda name: score.baselines[name][-1].log_likelihood)
        rows.append((seed, f"n-gram ({best})", score.baselines[best][-1].log_likelihood, float("nan")))
        rows.append((seed, "exact model", score.truth[-1].log_likelihood, float("nan")))

        actions = sorted(set(training.actions) | set(test.actions))
        observations = sorted(set(training.observations) | set(test.observations))
        data = arguments.into / f"logs-{seed}.json"
        parts = {name: arrays(logs, actions, observations) for name, logs in [("training", training), ("test", test)]}
        data.write_text(json.dumps({"actions": len(actions), "observations": len(observations), **parts}))
        for peer, (requirements, script) in PEERS.items():
            python = environment(peer, requirements, arguments.into)
            if python is None:
                continue
            command = [python, Path(__file__).parent / script, data]
            run = subprocess.run(command, capture_output=True, text=True, timeout=1800)
            if run.returncode:
                print(f"{peer}: failed ({run.stderr.strip().splitlines()[-1][:160]})")
                continue
            for line in run.stdout.splitlines():
                told = json.loads(line)
                rows.append((seed, told["name"], told["log_likelihood"], told["seconds"]))
    print(f"\n{arguments.episodes} training episodes, {arguments.seeds} seeds; log-likelihood of a held-out episode, nats")
    for name in dict.fromkeys(name for _, name, _, _ in rows):
        values = np.array([value for _, other, value, _ in rows if other == name])
        seconds = np.array([s for _, other, _, s in rows if other == name])
        took = "" if np.isnan(seconds).all() else f"{seconds.mean():8.2f} s"
        print(f"  {name:<40} {values.mean():8.3f} (least {values.min():8.3f}) {took}")


if __name__ == "__main__":
    sys.exit(main())
