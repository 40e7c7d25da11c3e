"""Four public tables, read as they are, with flags alone.

    python public_tables.py [--binary foretell] [--folder FOLDER]

Patients after a heart transplant (`cav`) come from Debian's package r-cran-msm, careers (`mvad`) and
families (`biofam`) from its package r-cran-traminer, and elk from r-cran-movehmm. Where a release of
Debian does not have one of the last two, `mvad` and `biofam` are taken from the package sequenzo of
PyPI, which has the same tables. Installed R packages are used where they are. What cannot be had is
skipped with a message. Nothing is installed but a virtual environment in the folder, for the package rdata that reads R's files.
"""

import argparse
import csv
import math
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

# Reads a data set of an installed R package, whose tables are one after the other in a file, and
# writes it as CSV.
CONVERT = """
import sys, zlib, warnings
from pathlib import Path
import rdata
warnings.simplefilter("ignore")
folder, name, out = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
read = lambda data: rdata.conversion.convert(rdata.parser.parse_data(data))
begin, length = map(int, read((folder / "Rdata.rdx").read_bytes())["variables"][name])
# four bytes of length, then zlib
read(zlib.decompress((folder / "Rdata.rdb").read_bytes()[begin + 4 : begin + length])).to_csv(out, index=False)
"""


# Where R packages are installed, those of Debian first.
LIBRARIES = ["/usr/lib/R/site-library", "/usr/local/lib/R/site-library", "/usr/lib/R/library"]


class Skip(Exception):
    """A table cannot be had here."""


def run(*command, folder):
    ran = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        lines = (ran.stderr or ran.stdout).strip().splitlines()
        raise Skip(f"{command[0]}: {lines[-1] if lines else ran.returncode}")
    return ran.stdout


def python(folder, package):
    """The Python of a virtual environment with a package of PyPI."""
    home = folder / "venv"
    if not home.exists():
        venv.create(home, with_pip=True)
    binary = home / "bin" / "python"
    run(binary, "-m", "pip", "install", "--quiet", package, folder=folder)
    return binary


def library(folder, package):
    """The folder of an R package: that of an installed one, or of Debian's, which is unpacked only."""
    installed = [Path(root) / package for root in LIBRARIES if (Path(root) / package).is_dir()]
    if installed:
        return installed[0]
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise Skip("no apt-get and dpkg-deb here")
    run("apt-get", "download", f"r-cran-{package.lower()}", folder=folder)
    deb = next(folder.glob(f"r-cran-{package.lower()}_*.deb"))
    run("dpkg-deb", "-x", deb, folder / package, folder=folder)
    return folder / package / LIBRARIES[0].lstrip("/") / package


def from_r(folder, package, name):
    """A data set of an R package."""
    data = library(folder, package) / "data"
    out = folder / f"{name}.csv"
    run(python(folder, "rdata"), "-c", CONVERT, data, name, out, folder=folder)
    return out


def from_pypi(folder, name):
    """A data set of the package sequenzo."""
    run(python(folder, "pip"), "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "sequenzo", folder=folder)
    with zipfile.ZipFile(next(folder.glob("sequenzo-*.whl"))) as wheel:
        out = folder / f"{name}.csv"
        out.write_bytes(wheel.read(f"sequenzo/datasets/{name}.csv"))
        return out


def sequences(folder, name):
    try:
        return from_r(folder, "TraMineR", name)
    except Skip:
        return from_pypi(folder, name)


def elk(folder):
    """Step lengths in kilometres and turning angles, which the user computes from positions."""
    positions = from_r(folder, "moveHMM", "elk_data")
    with open(positions, newline="") as table:
        rows = list(csv.DictReader(table))
    out = folder / "elk.csv"
    with open(out, "w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["ID", "length", "angle"])
        for before, here, after in zip(rows, rows[1:], rows[2:]):
            if before["ID"] == here["ID"] == after["ID"]:
                (ax, ay), (bx, by), (cx, cy) = [(float(row["Easting"]), float(row["Northing"])) for row in (before, here, after)]
                turn = math.atan2(cy - by, cx - bx) - math.atan2(by - ay, bx - ax)
                writer.writerow([here["ID"], math.hypot(cx - bx, cy - by) / 1000, math.remainder(turn, 2 * math.pi)])
    return out


# Each table: how it is had, the flags that say what its columns mean, and what is held out together.
TABLES = {
    "cav": (
        lambda folder: from_r(folder, "msm", "cav"),
        ["--episode", "PTNUM", "--sort", "years", "--action", "none", "--observation", "state"]
        + ["--elapsed", "years", "--elapsed-bins", "15m,30m"],
        "PTNUM",
    ),
    "mvad": (lambda folder: sequences(folder, "mvad"), ["--action", "none", "--wide", "Jul.93..Jun.99"], "id"),
    "biofam": (lambda folder: sequences(folder, "biofam"), ["--action", "none", "--wide", "*15..*30"], "idhous"),
    "elk": (elk, ["--episode", "ID", "--action", "none", "--observation", "length,angle"], "ID"),
}


def exact(flag, table):
    """A range of columns such as *15..*30, with their names in the table: a15 in R, 15 elsewhere."""
    if not flag.startswith("*"):
        return flag
    with open(table, newline="") as rows:
        header = next(csv.reader(rows))
    ends = [end.removeprefix("*") for end in flag.split("..")]
    return "..".join(next(name for name in header if name in (end, f"a{end}")) for end in ends)


def study(foretell, folder, table, flags, by):
    """What a new user does: look, divide, learn, score."""
    say = lambda *command: run(foretell, *command, "--quiet", folder=folder)
    seen = say("inspect", table, *flags).splitlines()
    first = next(i for i, line in enumerate(seen) if "episode" in line and "step" in line and not line.startswith(" "))
    print("\n".join(seen[first : first + 2]))
    say("split", table, "--by", by, "--test", "0.3", "--seed", "1", "-o", "train.csv,test.csv")
    say("learn", "train.csv", *flags, "-o", "model.safetensors")
    scored = say("score", "model.safetensors", "test.csv").splitlines()
    verdict = [line for line in scored if "predicts better" in line or "no baseline is better" in line or "too short" in line]
    print("\n".join([scored[0], *verdict]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="foretell", help="the program")
    parser.add_argument("--folder", type=Path, help="where tables are kept; by default a temporary folder")
    args = parser.parse_args()
    binary = shutil.which(args.binary)
    if binary is None:
        sys.exit(f"there is no program {args.binary}; give it with --binary")
    binary = Path(binary).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for name, (fetch, flags, by) in TABLES.items():
            print(f"== {name}: {' '.join(flags)}", flush=True)
            try:
                table = fetch(folder)
            except Skip as why:
                print(f"skipped: {why}")
                continue
            study(binary, folder, table, [exact(flag, table) for flag in flags], by)


if __name__ == "__main__":
    main()
