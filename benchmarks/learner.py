"""What the two NumPy learners share: logs, cuts, the model, and the command that `run.py` races."""

import argparse
import json
import resource
import time
from typing import Callable, NamedTuple

import numpy as np

NOTHING = 0  # The "pair" that follows the end of an episode; real pairs count from 1.


class Logs(NamedTuple):
    """Episodes laid end to end."""

    pairs: np.ndarray  # action–observation pair of each step, from 1
    action_of: np.ndarray  # action of each pair; entry 0 belongs to NOTHING
    first: np.ndarray  # first step of each episode
    length: np.ndarray
    terminated: np.ndarray  # whether the episode ended by itself


class Model(NamedTuple):
    """c₁, c_∞, C_ao and the mean state after each pair."""

    c_1: np.ndarray
    c_inf: np.ndarray
    operators: np.ndarray  # pairs × d′ × d′
    mean_states: np.ndarray  # pairs × d′


def count_cuts(logs: Logs, room: int) -> np.ndarray:
    """Cuts of each episode that have room for `next` and the longest test.

    Nothing follows termination, and that is known, so a terminated episode has room everywhere, up to the last cut
    that an episode of full length has.
    """
    truncated = logs.length[~logs.terminated]
    last = truncated.max() - room if len(truncated) else logs.length.max()
    return np.maximum(np.where(logs.terminated, np.minimum(logs.length, last), logs.length - room), 0)


def parse(description: str) -> argparse.Namespace:
    """The parameters of the preset that the benchmark varies."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("logs", help="CSV with columns episode_id, action, observation, terminated")
    parser.add_argument("--projection", choices=["hashed", "rademacher", "spherical"], default="spherical")
    parser.add_argument("--dim", type=int, default=75, help="rows of Φ_T and of Φ_H")
    parser.add_argument("--rank", type=int, default=5)
    parser.add_argument("--max-test-length", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="assert that the model predicts its logs better than guessing")
    return parser.parse_args()


def race(
    started: float, description: str, read_logs: Callable[[str], Logs], learn: Callable[[Logs, argparse.Namespace], Model]
) -> None:
    """Reads, learns, and prints how long it took since `started`, imports included, as JSON."""
    args = parse(description)
    imported = time.perf_counter()
    logs = read_logs(args.logs)
    read = time.perf_counter()
    model = learn(logs, args)
    learned = time.perf_counter()
    report = {
        "import_s": imported - started,
        "read_s": read - imported,
        "learn_s": learned - read,
        "total_s": learned - started,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    if args.check:
        from numpy_learner import check  # After the clock has stopped: filtering is no part of the race.

        report["log_likelihood_per_step"] = check(logs, model)
    print(json.dumps(report))
