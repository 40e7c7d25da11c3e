"""Measures our Extra-Trees beside scikit-learn's: time, and error on rows that neither has seen.

Both sides fit the same rows with the same number of threads, in turns within one run. Times are wall-clock seconds from
arrays in memory; ours include the conversion of rows to the layout that trees read. Run it on a quiet machine with the
interpreter of the environment that `requirements.txt` describes, after
`cargo build --release -p foretell-experiments --bin benchmark-forest`:

    python benchmarks/trees.py --binary target/release/benchmark-forest

`--reference` prints the figures against which `crates/foretell/tests/trees.rs` holds our forests, on the same data.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

ROWS, WIDTH = 50_000, 25  # a planning problem of some thousand episodes
TREES, N_MIN = 25, 10
# Where the features that matter stand: not first, as ties that went to the first feature would otherwise look like skill.
PLACES = [7, 2, 9, 4, 0]
PROBLEMS = ["friedman", "steps", "linear"]


def target(problem: str, x: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """What is to be predicted: Friedman's first function, a piecewise constant one, a linear one; with noise."""
    a, b, c, d, e = (x[:, place] for place in PLACES)
    if problem == "friedman":
        return 10 * np.sin(math.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e + noise
    if problem == "steps":
        return 4.0 * (a > 0.3) + 2.0 * ((b > 0.6) & (c < 0.5)) - 3.0 * (d > 0.8) + 0.5 * noise
    return 3 * a - 2 * b + c + 0.5 * d + noise


class Data(NamedTuple):
    """Rows to learn from, and others to judge by."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def sample(problem: str, seed: int) -> Data:
    """Uniform features, normal noise."""
    rng = np.random.default_rng(seed)
    x = [rng.random((ROWS, WIDTH), dtype=np.float32) for _ in range(2)]
    y = [target(problem, part.astype(float), rng.standard_normal(ROWS)) for part in x]
    return Data(x[0], y[0], x[1], y[1])


def rmse(predictions: np.ndarray, y: np.ndarray) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean((predictions - y) ** 2)))


class Result(NamedTuple):
    """One forest."""

    fit_s: float
    predict_s: float
    rmse: float


def theirs(data: Data, threads: int, seed: int) -> Result:
    """A forest of scikit-learn."""
    forest = ExtraTreesRegressor(TREES, min_samples_split=N_MIN, n_jobs=threads, random_state=seed)
    started = time.perf_counter()
    forest.fit(data.train_x, data.train_y)
    fitted = time.perf_counter()
    predictions = forest.predict(data.test_x)
    return Result(fitted - started, time.perf_counter() - fitted, rmse(predictions, data.test_y))


def ours(data: Data, threads: int, seed: int, binary: Path, folder: Path) -> Result:
    """A forest of foretell."""
    for name in ["train_x", "train_y", "test_x"]:
        getattr(data, name).tofile(folder / name)
    numbers = [WIDTH, TREES, N_MIN, threads, seed]
    report = json.loads(subprocess.check_output([binary, folder, *map(str, numbers)], text=True))
    return Result(report["fit_s"], report["predict_s"], rmse(np.fromfile(folder / "predictions"), data.test_y))


def mean_and_error(values: list[float]) -> str:
    """Mean and its standard error."""
    return f"{statistics.mean(values):.4f} ± {statistics.stdev(values) / math.sqrt(len(values)):.4f}"


def race(problem: str, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Both sides in turns, on fresh data each time."""
    results: dict[str, list[Result]] = {"ours": [], "theirs": []}
    for seed in range(1, args.seeds + 1):
        data = sample(problem, seed)
        results["ours"].append(ours(data, args.threads, seed, args.binary, folder))
        results["theirs"].append(theirs(data, args.threads, seed))
    row: dict[str, Any] = {"problem": problem}
    for step in ["fit_s", "predict_s"]:
        least = {side: min(getattr(r, step) for r in rs) for side, rs in results.items()}
        median = {side: statistics.median(getattr(r, step) for r in rs) for side, rs in results.items()}
        for side in results:
            row[f"{side} {step} (least / median)"] = f"{least[side]:.3f} / {median[side]:.3f}"
        row[f"ratio {step}"] = f"{least['theirs'] / least['ours']:.1f} / {median['theirs'] / median['ours']:.1f}"
    for side, rs in results.items():
        row[f"{side} RMSE"] = mean_and_error([r.rmse for r in rs])
    row["difference of RMSE"] = mean_and_error([a.rmse - b.rmse for a, b in zip(results["ours"], results["theirs"])])
    return row


class Generator:
    """xoshiro256++ from a seed expanded by SplitMix64, as in `foretell::Rng`."""

    MASK = (1 << 64) - 1

    def __init__(self, seed: int) -> None:
        self.state = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & self.MASK
            z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & self.MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & self.MASK
            self.state.append(z ^ (z >> 31))

    def turn(self, x: int, k: int) -> int:
        """Rotates 64 bits to the left."""
        return ((x << k) | (x >> (64 - k))) & self.MASK

    def uniform(self) -> float:
        """Uniform on [0, 1)."""
        s = self.state
        bits = (self.turn((s[0] + s[3]) & self.MASK, 23) + s[0]) & self.MASK
        t = (s[1] << 17) & self.MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = self.turn(s[3], 45)
        return (bits >> 11) * 2.0**-53


def reference_sample(problem: str) -> Data:
    """The rows of `crates/foretell/tests/trees.rs`: 1000 to learn from, 1000 to judge by; the noise sums 12 uniforms."""
    rows, width, rng = 2000, 10, Generator(PROBLEMS.index(problem))
    x = np.array([rng.uniform() for _ in range(rows * width)]).reshape(rows, width)
    noise = np.array([sum(rng.uniform() for _ in range(12)) - 6 for _ in range(rows)])
    y = target(problem, x, noise)
    return Data(x[:1000], y[:1000], x[1000:], y[1000:])


def reference(forests: int) -> None:
    """Mean and standard deviation of the error over forests that differ in their seed only."""
    print(f"scikit-learn {version('scikit-learn')}, {forests} forests of {TREES} trees")
    for problem, k, weighted in [
        ("friedman", None, False), ("friedman", 3, False), ("friedman", 1, False), ("friedman", None, True),
        ("steps", None, False), ("steps", 3, False), ("linear", None, False), ("linear", 1, False),
    ]:  # fmt: skip
        data = reference_sample(problem)
        weights = np.where(data.train_x[:, PLACES[3]] < 0.5, 1.0, 0.05) if weighted else None
        errors = []
        for seed in range(forests):
            forest = ExtraTreesRegressor(TREES, min_samples_split=N_MIN, max_features=k or 1.0, n_jobs=-1, random_state=seed)
            forest.fit(data.train_x, data.train_y, sample_weight=weights)
            errors.append(rmse(forest.predict(data.test_x), data.test_y))
        print(f"{problem}, K = {k or 'all'}{', weighted' if weighted else ''}: {statistics.mean(errors):.5f}, {statistics.stdev(errors):.5f}")


def parse() -> argparse.Namespace:
    """What differs between a full run and a quick try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=Path("target/release/benchmark-forest"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seeds", type=int, default=5, help="data sets for each problem")
    parser.add_argument("--reference", type=int, metavar="FORESTS", help="print the figures of the parity test instead")
    return parser.parse_args()


def main() -> None:
    """Measures everything and prints it."""
    args = parse()
    if args.reference:
        reference(args.reference)
        return
    about = f"scikit-learn {version('scikit-learn')}, {ROWS} rows of {WIDTH} features, {TREES} trees, n_min = {N_MIN}, K = all"
    print(f"# Extra-Trees\n\n{about}, threads: {args.threads}, load average: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        for problem in PROBLEMS:
            print()
            for name, value in race(problem, args, Path(folder)).items():
                print(f"{name:<36}{value}", flush=True)


if __name__ == "__main__":
    main()
