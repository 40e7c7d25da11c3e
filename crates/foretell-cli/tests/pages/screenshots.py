"""The pictures of pages that the documents show.

    python3 screenshots.py --binary target/release/foretell --into docs
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import browser

MAZE = "colored-gridworld"


def made(binary, folder):
    """A model and a policy of the maze, with their pages."""

    def foretell(*args):
        subprocess.run([binary, *map(str, args), "-q"], cwd=folder, stdout=subprocess.DEVNULL, check=True)

    for name, seed in [("walks.csv", 1), ("heldout.csv", 2)]:
        foretell("sample", MAZE, "--episodes", 10000, "--seed", seed, "-o", name)
    foretell("learn", "walks.csv", "--refine", "-o", "model.safetensors")
    foretell("plan", "model.safetensors", "walks.csv", "-o", "policy.safetensors")
    foretell("report", "model.safetensors", "--logs", "heldout.csv", "--truth", MAZE, "-o", "model.html")
    foretell("report", "policy.safetensors", "--logs", "heldout.csv", "--domain", MAZE, "-o", "policy.html")


def picture(tab, path):
    """What is seen, from the top, or where it was scrolled to."""
    tab.screenshot(path)
    print(f"{path}: {path.stat().st_size // 1000} kB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--into", type=Path, required=True)
    args = parser.parse_args()
    if not browser.find():
        print("no pictures: there is no Chromium; install it, or name one in CHROMIUM", file=sys.stderr)
        return 1
    args.into.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser.Browser() as tab:
        folder = Path(folder)
        made(args.binary.resolve(), folder)
        tab.open(folder / "model.html", 1080, 1330, False, scale=0.75)
        picture(tab, args.into / "report-model.png")
        tab.open(folder / "policy.html", 1080, 1020, True, scale=0.75)
        tab.run("document.querySelector('#episodes').scrollIntoView({behavior: 'instant'})")
        tab.run("document.querySelectorAll('#episodes .player button')[1].click()")
        picture(tab, args.into / "report-policy-dark.png")
        tab.open(folder / "policy.html", 390, 844, True)
        picture(tab, args.into / "report-phone-dark.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
