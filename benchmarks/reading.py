"""How fast tables are read: `foretell inspect` against polars.read_csv and pandas on the same file.

    python benchmarks/reading.py [--binary target/release/foretell] [--episodes 100000]

`inspect` also guesses what columns mean, makes symbols of names, checks every row, and counts; polars
only parses. It uses one core for that, polars all of them. Times are the minimum of five interleaved
runs. polars and pandas must be installed where this runs.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 5


def seconds(what):
    started = time.perf_counter()
    what()
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="target/release/foretell")
    parser.add_argument("--episodes", type=int, default=100_000)
    args = parser.parse_args()
    others = {}
    try:
        import polars

        others[f"polars {polars.__version__}"] = polars.read_csv
    except ImportError:
        sys.exit("polars is not installed here")
    try:
        import pandas

        others[f"pandas {pandas.__version__}"] = pandas.read_csv
    except ImportError:
        pass
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walks.csv"
        how = ["--episodes", str(args.episodes), "--policy", "uniform", "--seed", "1"]
        subprocess.run([args.binary, "sample", "colored-gridworld", *how, "-o", path, "--quiet"], check=True)
        with open(path) as table:
            steps = sum(1 for _ in table) - 1
        readers = {"foretell inspect": lambda: subprocess.run([args.binary, "inspect", path, "--json", "--quiet"], check=True, capture_output=True)}
        readers |= {name: (lambda read=read: read(path)) for name, read in others.items()}
        times = {name: [] for name in readers}
        for _ in range(RUNS):
            for name, read in readers.items():
                times[name].append(seconds(read))
        least = {name: min(all) for name, all in times.items()}
        print(f"{steps:,} steps, {path.stat().st_size / 1e6:.0f} MB of CSV")
        for name, time_ in least.items():
            print(f"  {name:<18} {time_:7.3f} s  {steps / time_ / 1e6:6.2f} million steps/s  {least['foretell inspect'] / time_:5.2f} × the speed of foretell")


if __name__ == "__main__":
    main()
