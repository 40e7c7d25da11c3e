"""d3rlpy's discrete DQN and CQL on the last pairs of action and observation, one-hot, and what the best of them earn in the maze.

Runs in an environment that has d3rlpy and foretell: `peers.py --offline-rl` makes one. Several gigabytes of torch come along.
"""

import json
import sys
import time

import numpy as np

PAIRS = 3  # as many as the best table of ours looks at
DISCOUNT = 0.99
STEPS = 20_000  # of gradient, in batches of 256
EPISODES = 2000  # to test in


class Stacked:
    """The last pairs as a vector of ones and zeros."""

    def __init__(self, actions: int, observations: int) -> None:
        self.width = actions + observations
        self.actions = actions

    def rows(self, data: dict[str, list[int]]) -> np.ndarray:
        """What is known before each step of the logs."""
        episode, action, observation = (np.array(data[name]) for name in ("episode", "action", "observation"))
        start = np.searchsorted(episode, episode)
        now = np.arange(len(episode))
        rows = np.zeros((len(episode), PAIRS * self.width), dtype=np.float32)
        for back in range(1, PAIRS + 1):
            known = now - back >= start
            at = (back - 1) * self.width
            rows[now[known], at + action[now[known] - back]] = 1
            rows[now[known], at + self.actions + observation[now[known] - back]] = 1
        return rows

    def shift(self, rows: np.ndarray, action: np.ndarray, observation: np.ndarray) -> np.ndarray:
        """What is known after one more pair."""
        rows = np.roll(rows, self.width, axis=1)
        rows[:, : self.width] = 0
        rows[np.arange(len(rows)), action] = 1
        rows[np.arange(len(rows)), self.actions + observation] = 1
        return rows


def main(path: str) -> None:
    import d3rlpy
    import structlog

    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    data = json.load(open(path))
    stacked = Stacked(len(data["action_names"]), len(data["observation_names"]))
    training = data["training"]
    dataset = d3rlpy.dataset.MDPDataset(
        observations=stacked.rows(training),
        actions=np.array(training["action"]).reshape(-1, 1),
        rewards=np.array(training["reward"], dtype=np.float32).reshape(-1, 1),
        terminals=np.array(training["terminated"], dtype=np.float32),
        timeouts=np.array(training["truncated"], dtype=np.float32),
        action_space=d3rlpy.constants.ActionSpace.DISCRETE,
        action_size=len(data["action_names"]),
    )
    for name, config in [("DQN", d3rlpy.algos.DoubleDQNConfig), ("CQL", d3rlpy.algos.DiscreteCQLConfig)]:
        d3rlpy.seed(data["seed"])
        algorithm = config(batch_size=256, gamma=DISCOUNT, learning_rate=3e-4, target_update_interval=1000).create(device="cpu:0")
        started = time.perf_counter()
        algorithm.fit(
            dataset,
            n_steps=STEPS,
            n_steps_per_epoch=STEPS,
            show_progress=False,
            logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        )
        seconds = time.perf_counter() - started
        print(json.dumps({"name": f"d3rlpy {name}, last {PAIRS} pairs", "return": earned(algorithm, stacked, data), "seconds": seconds}))


def earned(algorithm, stacked: Stacked, data: dict) -> float:
    """The mean discounted return of episodes in the maze, all of them side by side."""
    import foretell as ft

    domain = ft.Domain(data["domain"])
    number = {name: i for i, name in enumerate(data["observation_names"])}
    worlds = [domain.simulator(seed=data["seed"] * EPISODES + i) for i in range(EPISODES)]
    rows = np.zeros((EPISODES, PAIRS * stacked.width), dtype=np.float32)
    alive, total = np.ones(EPISODES, dtype=bool), np.zeros(EPISODES)
    for t in range(domain.horizon):
        actions = algorithm.predict(rows)
        observations = np.zeros(EPISODES, dtype=int)
        for i in np.flatnonzero(alive):
            seen, reward, terminated = worlds[i].step(data["action_names"][actions[i]])
            total[i] += DISCOUNT**t * reward
            observations[i] = number.get(seen, 0)
            alive[i] = not terminated
        rows = stacked.shift(rows, actions, observations)
    return float(total.mean())


if __name__ == "__main__":
    main(sys.argv[1])
