"""From a CSV file of logs to predictions and a policy; without an argument, with logs of a maze.

    python logs_from_csv.py [LOGS.csv]
"""

import sys
import tempfile
from pathlib import Path

import foretell as ft


def main(path: str | None) -> None:
    if path is None:
        path = str(Path(tempfile.mkdtemp()) / "walks.csv")
        ft.sample("colored-gridworld", episodes=10_000, seed=1).write(path)
        print(f"no logs given: wrote logs of a maze to {path}")

    logs = ft.read(path)
    print(logs)
    for finding in logs.summary()["findings"]:
        print(" ", finding)

    training, test = logs.split(0.8, seed=1)
    model = ft.learn(training, refine=True)
    print(model)
    score = ft.score(model, test)
    last = score.horizons[-1]
    print(f"log-likelihood of {last.horizon} steps, nats (closer to 0 is better):")
    print(f"  {'model':<8} {last.log_likelihood:8.3f} ± {last.ci95:.3f}")
    for name, line in score.baselines.items():
        print(f"  {name:<8} {line[-1].log_likelihood:8.3f}")

    episode = max(test, key=len)
    history = [(action, observation) for action, observation, _ in episode[:3]]
    action = model.actions[0]
    print(f"after {', '.join(f'{a}:{o}' for a, o in history)}, if {action} is taken:")
    for observation, probability in list(model.predict(history, action=action).items())[:3]:
        print(f"  {probability:.3f} {observation}")

    if logs.summary()["rewards"]["mean"] is None:
        print("the logs have no rewards, so there is nothing to plan for")
        return
    policy = ft.plan(model, training)
    print(policy)
    print(f"  return, estimated from all logs: {ft.evaluate(policy, logs, episodes=1000)}")
    policy.save("policy.safetensors")
    print("  saved in policy.safetensors: `foretell act policy.safetensors` reads observations and writes actions")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
