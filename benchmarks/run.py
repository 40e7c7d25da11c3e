"""Measures `foretell learn` end to end, beside the same learner in NumPy: tuned (`numpy_learner.py`), plain (`numpy_plain.py`).

Whole commands are timed, from a file of logs to a model, start-up included. The sides take turns within one run, so
that all meet the same machine; of their repetitions the least and the median are shown. Run it on a quiet Linux machine
with the interpreter of the environment that `requirements.txt` describes:

    python benchmarks/run.py --binary target/release/foretell
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

NUMPY_LEARNER = Path(__file__).with_name("numpy_learner.py")
NUMPY_PLAIN = Path(__file__).with_name("numpy_plain.py")
EPISODES = 10_000  # of ColoredGridWorld, as in the paper's experiment
MAX_STEPS = 13
DIM = 75
PROJECTIONS = ["hashed", "rademacher", "spherical"]
QUIET = 0.5  # Load average above which timings are not to be trusted.


class Run(NamedTuple):
    """One command, run once."""

    seconds: float
    peak_mib: float
    report: dict[str, float]  # the numbers in the JSON it printed


class Summary(NamedTuple):
    """Repetitions of one command."""

    least_s: float
    median_s: float
    peak_mib: float
    report: dict[str, float]  # of the fastest run


def run(command: list[str]) -> Run:
    """Runs a command to its end.

    The kernel counts what this script held when it started the child (about 20 MiB) as the child's least peak, so small
    peaks are read from GNU time where it is installed: it is a process of one MiB.
    """
    with tempfile.NamedTemporaryFile("r") as peak, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        gnu_time = shutil.which("time")
        wrapped = [gnu_time, "-q", "-f", "%M", "-o", peak.name, *command] if gnu_time else command
        started = time.perf_counter()
        child = subprocess.Popen(wrapped, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it again
        if child.returncode != 0:
            err.seek(0)
            sys.exit(f"{' '.join(Path(word).name for word in command)} failed:\n{err.read()}")
        out.seek(0)
        text, kib = out.read(), int(peak.read()) if gnu_time else usage.ru_maxrss
        report = json.loads(text) if text.startswith("{") else {}
        return Run(seconds, kib / 1024, {key: value for key, value in report.items() if isinstance(value, (int, float))})


def race(commands: dict[str, list[str]], repetitions: int) -> dict[str, Summary]:
    """Runs the commands in turns, after one turn that only warms the caches."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for turn in range(1 + repetitions):
        for name, command in commands.items():
            result = run(command)
            if turn > 0:
                runs[name].append(result)
    return {name: summarise(results) for name, results in runs.items()}


def summarise(runs: list[Run]) -> Summary:
    """Least and median time, largest peak."""
    fastest = min(runs, key=lambda r: r.seconds)
    median = statistics.median(r.seconds for r in runs)
    return Summary(fastest.seconds, median, max(r.peak_mib for r in runs), fastest.report)


class Bench:
    """The commands that are measured, and the logs they read."""

    def __init__(self, binary: Path, folder: Path, seed: int, repetitions: int) -> None:
        self.binary, self.folder, self.seed, self.repetitions = str(binary.resolve()), folder, seed, repetitions

    def logs(self, episodes: int, extension: str) -> Path:
        """Logs of that many episodes, sampled if they are not there yet."""
        path = self.folder / f"{episodes}.{extension}"
        if not path.exists():
            options = ["--episodes", str(episodes), "--max-steps", str(MAX_STEPS), "--policy", "uniform", "--seed", str(self.seed)]
            run([self.binary, "sample", "colored-gridworld", *options, "-o", str(path)])
        return path

    def learn(self, logs: Path, *options: str) -> list[str]:
        """Our command."""
        model = str(self.folder / "model")
        return [self.binary, "learn", str(logs), "-o", model, "--seed", str(self.seed), "--json", *options]

    def against_numpy(self) -> dict[str, Any]:
        """(a) The paper's learner at 75 dimensions, ours and NumPy's, tuned and plain, from the same CSV."""
        logs, rows = self.logs(EPISODES, "csv"), {}
        for projection in PROJECTIONS:
            dims = ["--test-dim", str(DIM), "--history-dim", str(DIM)]
            ours = self.learn(logs, "--preset", "paper", "--projection", projection, *dims)
            options = [str(logs), "--projection", projection, "--dim", str(DIM)]
            numpy, plain = ([sys.executable, str(script), *options] for script in (NUMPY_LEARNER, NUMPY_PLAIN))
            result = race({"ours": ours, "numpy": numpy, "plain": plain}, self.repetitions)
            # NumPy's reading and learning without Python's start-up, against our whole command: a bound in its favour.
            started = result["numpy"].report["read_s"] + result["numpy"].report["learn_s"]
            rows[projection] = {
                **{name: summary._asdict() for name, summary in result.items()},
                "ratio_least": result["numpy"].least_s / result["ours"].least_s,
                "ratio_median": result["numpy"].median_s / result["ours"].median_s,
                "ratio_plain_least": result["plain"].least_s / result["ours"].least_s,
                "ratio_plain_median": result["plain"].median_s / result["ours"].median_s,
                "numpy_read_and_learn_s": started,
                "ratio_read_and_learn": started / result["ours"].least_s,
                "ratio_memory": result["numpy"].peak_mib / result["ours"].peak_mib,
            }
        return rows

    def ours_alone(self) -> dict[str, Any]:
        """(b) and (c): without compression, and the default learner."""
        csv, parquet = self.logs(EPISODES, "csv"), self.logs(EPISODES, "parquet")
        commands = {
            "paper, identity (TPSR), CSV": self.learn(csv, "--preset", "paper", "--projection", "identity"),
            "default, CSV": self.learn(csv, "--preset", "default"),
            "default, Parquet": self.learn(parquet, "--preset", "default"),
        }
        return {name: summary._asdict() for name, summary in race(commands, self.repetitions).items()}

    def scaling(self, sizes: list[int]) -> dict[str, Any]:
        """(d) Time and memory over the number of episodes, from Parquet."""
        presets = {"default": ["--preset", "default"], "paper, hashed": ["--preset", "paper", "--projection", "hashed"]}
        rows: dict[str, dict[int, Summary]] = {name: {} for name in presets}
        for size in sizes:
            logs = self.logs(size, "parquet")
            result = race({name: self.learn(logs, *options) for name, options in presets.items()}, self.repetitions)
            for name, summary in result.items():
                rows[name][size] = summary
        return {name: scaling_of(by_size) for name, by_size in rows.items()}


def scaling_of(by_size: dict[int, Summary]) -> dict[str, Any]:
    """The rate between the last two sizes, where the fixed cost cancels, and the growth of memory from first to last."""
    summaries = list(by_size.values())
    answer: dict[str, Any] = {"sizes": {size: summary._asdict() for size, summary in by_size.items()}}
    if len(summaries) > 1:
        before, last = summaries[-2:]
        answer["steps_per_second"] = (last.report["steps"] - before.report["steps"]) / (last.least_s - before.least_s)
        answer["memory_growth"] = last.peak_mib / summaries[0].peak_mib
    return answer


def machine(binary: Path) -> dict[str, Any]:
    """What the numbers depend on."""
    cpu = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    code = "import numpy; b = numpy.show_config(mode='dicts')['Build Dependencies']['blas']; print(b['name'], b['version'])"
    blas = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
    return {
        "cpu": cpu[0] if cpu else platform.processor(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "foretell": subprocess.check_output([binary, "--version"], text=True).split()[-1],
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "pyarrow": version("pyarrow"),
        "blas": blas,
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or os.cpu_count(),
    }


def show_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """A heading and aligned columns."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n## {title}\n")
    for row in [header, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:]))]) + " |")


def times(summary: dict[str, Any]) -> str:
    """Least and median seconds."""
    return f"{summary['least_s']:.3f} / {summary['median_s']:.3f}"


def mib(summary: dict[str, Any]) -> str:
    """Peak memory."""
    return f"{summary['peak_mib']:.0f}"


def show(results: dict[str, Any]) -> None:
    """All tables."""
    title = f"The paper's learner on {EPISODES} episodes, {DIM} dimensions, from CSV (seconds: least / median)"
    header = [
        "projection", "foretell s", "NumPy s", "ratio", "NumPy read + learn s", "ratio", "plain NumPy s", "ratio",
        "foretell MiB", "NumPy MiB",
    ]  # fmt: skip
    rows = [
        [
            projection, times(r["ours"]), times(r["numpy"]), f"{r['ratio_least']:.1f} / {r['ratio_median']:.1f}",
            f"{r['numpy_read_and_learn_s']:.3f}", f"{r['ratio_read_and_learn']:.1f}",
            times(r["plain"]), f"{r['ratio_plain_least']:.1f} / {r['ratio_plain_median']:.1f}", mib(r["ours"]), mib(r["numpy"]),
        ]
        for projection, r in results["against_numpy"].items()
    ]  # fmt: skip
    show_table(title, header, rows)

    rows = [[name, times(r), mib(r)] for name, r in results["ours_alone"].items()]
    show_table(f"Other learners on {EPISODES} episodes (seconds: least / median)", ["learner", "s", "MiB"], rows)

    for name, scaling in results["scaling"].items():
        rows = [
            [str(size), str(r["report"]["steps"]), times(r), f"{r['report']['steps'] / r['least_s'] / 1e6:.2f}", mib(r)]
            for size, r in scaling["sizes"].items()
        ]
        header = ["episodes", "steps", "s", "million steps/s", "MiB"]
        show_table(f"Scaling from Parquet: {name} (seconds: least / median)", header, rows)
        if "steps_per_second" in scaling:
            rate, growth = scaling["steps_per_second"] / 1e6, scaling["memory_growth"]
            print(f"\nNet of the fixed cost {rate:.2f} million steps/s; memory grows {growth:.2f} times from first to last.")


def parse() -> argparse.Namespace:
    """What differs between a full run and a quick try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=Path("target/release/foretell"), help="foretell, built for release")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="episodes for scaling")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all results to a file")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the logs in this folder, and use those already there")
    return parser.parse_args()


def main() -> None:
    """Measures everything and prints it."""
    args = parse()
    about = machine(args.binary)
    print("# Benchmarks\n\n" + "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in about.items()))
    if about["load_average"] > QUIET:
        print(f"\nThe load average is above {QUIET}: others are using this machine, and the timings below are not to be trusted.")
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(args.binary, folder, args.seed, args.repetitions)
        results = {
            "machine": about,
            "against_numpy": bench.against_numpy(),
            "ours_alone": bench.ours_alone(),
            "scaling": bench.scaling(args.sizes),
        }
    show(results)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
