"""The wheel in a fresh virtual environment: how large it is, how long it takes to install, to import and to get something done.

    python benchmarks/fresh.py [target/wheels/foretell-….whl]

`make python` builds the wheel.
"""

import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

RUNS = 7
QUICKSTART = """
import time
started = time.perf_counter()
import foretell as ft

def told(what):
    global started
    print(f"  {what:<28} {time.perf_counter() - started:6.2f} s", flush=True)
    started = time.perf_counter()

told("import")
ft.sample("colored-gridworld", episodes=10_000, seed=1).write("walks.parquet")
told("10 000 episodes to Parquet")
logs = ft.read("walks.parquet")
model = ft.learn(logs, refine=True)
told("read, learn, refine")
model.predict(history=[("N", "....")], action="E")
policy = ft.plan(model, logs)
told("plan")
earned = ft.evaluate(policy, "colored-gridworld", episodes=1000)
told("1000 episodes in the maze")
print(" ", earned)
"""


def seconds(*command: object, cwd: str | None = None) -> float:
    started = time.perf_counter()
    subprocess.run([str(part) for part in command], check=True, capture_output=True, cwd=cwd)
    return time.perf_counter() - started


def main() -> None:
    root = Path(__file__).parents[1]
    wheels = [Path(path) for path in sys.argv[1:]] or sorted((root / "target" / "wheels").glob("*.whl"))
    if not wheels:
        sys.exit("there is no wheel in target/wheels: run `make python` first")
    wheel = wheels[0].resolve()
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        packages = Path(folder) / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        numpy = seconds(python, "-m", "pip", "install", "--quiet", "numpy")
        own = seconds(python, "-m", "pip", "install", "--quiet", wheel)
        on_disk = sum(path.stat().st_size for path in (packages / "foretell").rglob("*") if path.is_file())
        print(f"wheel {wheel.stat().st_size / 1e6:.1f} MB, {on_disk / 1e6:.1f} MB installed")
        print(f"pip install: NumPy {numpy:.1f} s, foretell {own:.1f} s")

        def median(code: str) -> float:
            seconds(python, "-c", code)  # once to write bytecode
            return statistics.median(seconds(python, "-c", code) for _ in range(RUNS))

        bare, with_numpy, all_of_it = median("pass"), median("import numpy"), median("import foretell")
        print(f"import: {1e3 * (all_of_it - bare):.0f} ms, of which NumPy {1e3 * (with_numpy - bare):.0f} ms (median of {RUNS})")
        print("quickstart:", flush=True)
        subprocess.run([python, "-c", QUICKSTART], check=True, cwd=folder)


if __name__ == "__main__":
    main()
