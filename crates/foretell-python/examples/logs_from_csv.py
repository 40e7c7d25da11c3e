"""From a CSV of logs to predictions and a policy: the whole way, with a maze in place of your own table.

    python logs_from_csv.py [LOGS.csv]
"""

import sys
import tempfile
from pathlib import Path

import foretell as ft


def main(path: str | None) -> None:
    if path is None:
        path = str(Path(tempfile.mkdtemp()) / "walks.csv")
        ft.sample("colored-gridworld", episodes=5000, seed=1).write(path)
        print(f"no logs given: wrote some of a maze to {path}")

    logs = ft.read(path)
    print(logs)
    for finding in logs.summary()["findings"]:
        print(" ", finding)

    training, test = logs.split(0.8, seed=1)
    model = ft.learn(training, refine=True)
    score = ft.score(model, test)
    last = score.horizons[-1]
    print(model)
    print(f"  log-likelihood of {last.horizon} steps: {last.log_likelihood:.3f} ± {last.ci95:.3f} nats")
    for name, line in score.baselines.items():
        print(f"  {name}: {line[len(score.horizons) - 1].log_likelihood:.3f}")

    first = next(iter(test))
    history = [(action, observation) for action, observation, _ in first[:3]]
    print(f"after {history}, if {model.actions[0]!r} is done:")
    for observation, probability in list(model.predict(history, action=model.actions[0]).items())[:3]:
        print(f"  {probability:.3f} {observation}")

    if logs.summary()["rewards"]["mean"] is not None:
        policy = ft.plan(model, training)
        worth = ft.evaluate(policy, test, episodes=1000)
        assert isinstance(worth, ft.LogValue)
        print(f"{policy}: by the test logs {worth.fitted_q.value:.3f} ± {worth.fitted_q.ci95:.3f}, discounted")
        print(f"  in its own model {worth.rollouts.value:.3f}" if worth.rollouts else "")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
