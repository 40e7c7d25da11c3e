"""Measures `foretell plan` on PocMan beside the same fitted-Q loop with scikit-learn's Extra-Trees.

Ours are whole commands, from the files of a model and of logs to the file of a policy, start-up included. Theirs is the loop
alone, on predictive states that are in memory already, in the single precision that its trees read: a gift to it. Both have the
same states, 25 trees for each action, K = all features, n_min = 10, and average r + γ max_a Q(s', a), where nothing follows a
terminated step and what would have followed a truncated one counts. Ours run before and after theirs, with one seed each. What
both say of the mean value at the start must agree: only the randomness of trees is between them. Where others use the machine,
seconds of its processors say more than those of the clock. Run it on a quiet one with the interpreter of the environment that
`requirements.txt` describes, after `cargo build --release` and `cargo build --release -p foretell-experiments --bin benchmark-states`:

    python benchmarks/planning.py --binary target/release/foretell --states target/release/benchmark-states
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from run import Run, run, show_table
from sklearn.ensemble import ExtraTreesRegressor

TREES, N_MIN, DISCOUNT = 25, 10, 0.99  # as in `foretell plan --preset paper`
PLANS = {
    "paper": ["--preset", "paper"],
    "frozen": ["--structure", "frozen", "--state", "predictive", "--regressor", "trees"],
    "default": [],  # the only one that has the last observation beside the predictive state, and maybe a table beside the trees
}


class Experience(NamedTuple):
    """What fitted-Q learns from; an episode of n steps has n + 1 states, one after the other."""

    states: np.ndarray
    starts: np.ndarray  # rows of the states in which episodes begin
    rows: np.ndarray  # of the state before each step
    actions: np.ndarray
    rewards: np.ndarray
    terminals: np.ndarray


def experience(states: Path, model: Path, logs: Path, folder: Path) -> Experience:
    """The predictive states along the logs, as our filter gives them."""
    width = int(subprocess.check_output([states, model, logs, folder], text=True))
    types = {"states": "<f8", "starts": "<u4", "rows": "<u4", "actions": "<u4", "rewards": "<f8", "terminals": "?"}
    arrays = {name: np.fromfile(folder / name, dtype) for name, dtype in types.items()}
    arrays["states"] = arrays["states"].reshape(-1, width).astype(np.float32)
    return Experience(**arrays)


class Planned(NamedTuple):
    """One plan."""

    seconds: float
    cpu_s: float  # of all threads
    start_value: float  # mean of max_a Q(s, a) over the starts of episodes, after the last round


def theirs(data: Experience, rounds: int, threads: int, seed: int) -> Planned:
    """Fitted-Q, a forest of scikit-learn for each action refitted in each round."""
    started, cpu = time.perf_counter(), time.process_time()
    taken = [np.flatnonzero(data.actions == a) for a in np.unique(data.actions)]
    inputs = [data.states[data.rows[steps]] for steps in taken]
    values = np.zeros(len(data.states))
    for k in range(rounds):
        targets = data.rewards + DISCOUNT * np.where(data.terminals, 0.0, values[data.rows + 1])
        values = np.full(len(data.states), -np.inf)
        for a, (steps, x) in enumerate(zip(taken, inputs)):
            number = (seed * rounds + k) * len(taken) + a
            forest = ExtraTreesRegressor(TREES, min_samples_split=N_MIN, n_jobs=threads, random_state=number)
            forest.fit(x, targets[steps])
            values = np.maximum(values, forest.predict(data.states))
    return Planned(time.perf_counter() - started, time.process_time() - cpu, float(values[data.starts].mean()))


def children_s() -> float:
    """Processor seconds of all commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system


class Bench:
    """Our commands, and the files they read."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder, self.binary = args, folder, str(args.binary.resolve())
        self.logs, self.model = folder / "logs.csv", folder / "model.safetensors"

    def foretell(self, *words: object) -> Run:
        """Runs one command."""
        return run([self.binary, *map(str, words), "--threads", str(self.args.threads)])

    def prepare(self) -> Experience:
        """Random episodes, and the default model of them."""
        self.foretell("sample", "pocman", "--episodes", self.args.episodes, "--seed", 1, "-o", self.logs)
        self.foretell("learn", self.logs, "-o", self.model)
        return experience(self.args.states.resolve(), self.model, self.logs, self.folder)

    def plan(self, options: list[str], seed: int) -> Planned:
        """Our whole command."""
        policy = self.folder / "policy.safetensors"
        common = ["--rounds", self.args.rounds, "--seed", seed, "--discount", DISCOUNT, "--json"]
        cpu = children_s()
        result = self.foretell("plan", self.model, self.logs, "-o", policy, *options, *common)
        return Planned(result.seconds, children_s() - cpu, result.report["start_value"])

    def plans(self, seed: int) -> dict[str, Planned]:
        """All of ours."""
        return {name: self.plan(options, seed) for name, options in PLANS.items()}


def row(name: str, plans: list[Planned], reference: list[Planned]) -> list[str]:
    """One side: seconds and values, with the ratios of the reference to them."""
    cells = [name]
    for unit in ["seconds", "cpu_s"]:
        mine, others = ([getattr(plan, unit) for plan in side] for side in (plans, reference))
        least, median = min(mine), statistics.median(mine)
        cells.append(f"{least:.2f} / {median:.2f}")
        cells.append(f"{min(others) / least:.1f} / {statistics.median(others) / median:.1f}")
    values = [plan.start_value for plan in plans]
    cells.append(f"{statistics.mean(values):.2f}")
    cells.append(f"{statistics.stdev(values):.2f}" if len(values) > 1 else "")
    return cells


def load() -> str:
    """Load average over the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def parse() -> argparse.Namespace:
    """What differs between a full run and a quick try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=Path("target/release/foretell"))
    parser.add_argument("--states", type=Path, default=Path("target/release/benchmark-states"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=100, help="of fitted-Q, on both sides")
    parser.add_argument("--seeds", type=int, default=4, help="of ours, half of them before scikit-learn")
    parser.add_argument("--their-seeds", type=int, default=1, help="of scikit-learn, which takes minutes each")
    return parser.parse_args()


def main() -> None:
    """Measures everything and prints it."""
    args = parse()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        data = bench.prepare()
        print(f"# Planning\n\nPocMan, {args.episodes} random episodes, {len(data.actions)} steps, states of {data.states.shape[1]} numbers")
        print(f"{args.rounds} rounds, {TREES} trees for each action, n_min = {N_MIN}, threads: {args.threads}", flush=True)
        loads, half = [load()], args.seeds // 2
        ours = [bench.plans(seed) for seed in range(half)]
        loads.append(load())
        reference = [theirs(data, args.rounds, args.threads, seed) for seed in range(args.their_seeds)]
        loads.append(load())
        ours += [bench.plans(seed) for seed in range(half, args.seeds)]
    print(f"load average before, before and after scikit-learn, and after: {', '.join([*loads, load()])}")
    header = ["planner", "s", "ratio", "processor s", "ratio", "value at the start", "deviation over seeds"]
    rows = [row(name, [plans[name] for plans in ours], reference) for name in PLANS]
    rows.append(row(f"scikit-learn {version('scikit-learn')}", reference, reference))
    show_table(f"Seconds: least / median of {args.seeds} of ours, {args.their_seeds} of scikit-learn's", header, rows)


if __name__ == "__main__":
    main()
