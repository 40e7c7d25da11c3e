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
        ft.sample("colored-gridworld", episodes=6000, seed=1).write(path)
        print(f"no logs given: wrote logs of a maze to {path}")

    logs = ft.read(path)
    print(logs)
    for finding in logs.summary()["findings"]:
        print(" ", finding)

    training, test = logs.split(0.8, seed=1)
    model = ft.learn(training)
    print(model)
    print(model.selection)
    score = ft.score(model, test)
    print(f"log-likelihood of a step: {score.per_step:.3f} nats; how much better the model is than")
    for other in score.comparisons:
        interval = "" if other.ci95 is None else f" ± {other.ci95:.3f}"
        print(f"  {other.name:<8} {other.difference:+.3f}{interval}")

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
