"""Opens pages of all kinds in Chromium, light and dark, wide and narrow, and uses them as a person would.

    python3 check.py --binary target/debug/foretell
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import browser
import make

WIDE, NARROW, HEIGHT = 1280, 390, 900
LEAST_CONTRAST = 4.5  # WCAG 2.2, AA, for text

# Every mark of a drawing has numbers, and every chart has marks.
DRAWN = """[...document.querySelectorAll('.chart')].map(chart => {
  const marks = [...chart.querySelectorAll('svg path, svg rect, svg circle')];
  const bad = [...chart.querySelectorAll('svg *')].flatMap(node => [...node.attributes])
    .filter(a => /NaN|undefined|Infinity/.test(a.value)).map(a => `${a.name}=${a.value}`);
  const name = chart.querySelector('title')?.textContent ?? chart.querySelector('svg')?.getAttribute('aria-label') ?? '';
  return {name, marks: marks.length, bad};
})"""
# What reaches beyond the screen without being in something that scrolls. (A phone makes innerWidth as wide as the page.)
BEYOND = """[...document.querySelectorAll('#page *')].filter(node => {
  const box = node.getBoundingClientRect();
  return box.width > 0 && box.right > screen.width + 1 && !node.closest('.scroll, nav, pre, .hidden');
}).map(node => `${node.tagName} ${node.className.baseVal ?? node.className}`)"""
CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const light = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = node => { for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor;
    if (!/, 0\\)$|transparent/.test(colour)) return colour; } return 'white'; };
  const worst = {};
  for (const node of document.querySelectorAll('h1, h2, h3, p, dt, dd, td, th, li, nav a, .name, .value, .numbers *, summary, .tabs button, .chart text')) {
    if (!node.textContent.trim() || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const [a, b] = [light(node.closest('svg') ? style.fill : style.color), light(ground(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), key = node.tagName + '.' + (node.className.baseVal ?? node.className);
    worst[key] = Math.min(worst[key] ?? 99, ratio);
  }
  return worst;
})()"""


class Checks:
    """Checks claims, and reports those that are false."""

    def __init__(self):
        self.made, self.failed = 0, []

    def __call__(self, holds, claim):
        self.made += 1
        if not holds:
            self.failed.append(claim)
            print(f"FAILED: {claim}", file=sys.stderr)


def look(tab, check, name, sections, where):
    """What must be true of every page before anything is touched."""
    for id in sections:
        check(tab.run(f"!!document.querySelector('section#{id} h2')"), f"{where}: there is a section {id}")
    for chart in tab.run(DRAWN):
        check(chart["marks"] > 0 and not chart["bad"], f"{where}: {chart['name']} is drawn ({chart['marks']} marks, {chart['bad']})")
    charts = tab.run("document.querySelectorAll('.chart svg').length")
    check(charts >= {"model": 4, "bare": 1, "policy": 6, "watching": 5, "run": 4, "nasty": 4}[name], f"{where}: {charts} charts")
    check(tab.run("document.documentElement.scrollWidth <= screen.width && innerWidth === screen.width"), f"{where}: the page is as wide as the screen")
    beyond = tab.run(BEYOND)
    check(not beyond, f"{where}: nothing reaches beyond the screen: {beyond[:3]}")
    text = tab.run("document.body.innerText")
    check(not any(word in text for word in ["undefined", "NaN", "[object"]), f"{where}: the text is whole")
    weak = {key: ratio for key, ratio in tab.run(CONTRAST).items() if ratio < LEAST_CONTRAST}
    check(not weak, f"{where}: text can be read: {weak}")


def centre(tab, selector):
    """Scrolls to an element; returns its centre."""
    box = f"(() => {{ const n = document.querySelector('{selector}'); n.scrollIntoView({{block: 'center', behavior: 'instant'}}); " \
          "const b = n.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()"
    return tab.run(box)


def use(tab, check, where):
    """Lines that hide, values under the pointer, keys, the slider, the other episode, colours."""
    paths = "document.querySelectorAll('#foresight .chart svg path').length"
    before = tab.run(paths)
    tab.run("document.querySelector('#foresight .legend button').click()")
    check(tab.run(paths) < before, f"{where}: a line goes when its name is pressed")
    tab.run("document.querySelectorAll('#foresight .legend button[aria-pressed=true]').forEach(b => b.click())")
    check("No lines selected" in tab.run("document.querySelector('#foresight .chart').textContent"), f"{where}: a chart without lines says so")
    tab.run("document.querySelectorAll('#foresight .views button')[2].click()")
    check(tab.run("document.querySelector('#foresight figure').textContent.includes('better than this model')"), f"{where}: there are other views")
    tip = "(t => t.hidden ? '' : t.innerText)(document.querySelector('#foresight .tip'))"
    tab.hover(*centre(tab, "#foresight .chart svg"))
    check("horizon" in tab.run(tip) and "this model" in tab.run(tip), f"{where}: values are shown under the pointer")
    tab.run("document.querySelector('#foresight .chart svg').focus()")
    tab.press("ArrowRight")
    first = tab.run(tip)
    tab.press("ArrowRight")
    spoken = tab.run("document.querySelector('#foresight [aria-live]').textContent")
    check(first and first != tab.run(tip) and spoken, f"{where}: keys go through the values")
    story = "document.querySelector('#episodes .story').innerText"
    tab.run("document.querySelector('#episodes input').focus()")
    tab.press("ArrowRight")
    check("Step 2 of" in tab.run(story), f"{where}: keys move the slider: {tab.run(story)}")
    check(tab.run("document.querySelectorAll('#episodes .bars .hit').length") == 1, f"{where}: what happened is marked once")
    tab.run("document.querySelectorAll('#episodes [role=tab]')[1].click()")
    check(tab.run("document.querySelectorAll('#episodes [role=tab]')[1].getAttribute('aria-selected')") == "true"
          and "Step 1 of" in tab.run(story), f"{where}: there is another episode")
    ground = "getComputedStyle(document.body).backgroundColor"
    seen = []
    for _ in range(3):
        tab.run("document.querySelector('.top button').click()")
        seen.append(tab.run(ground))
    check(len(set(seen)) == 2 and seen[0] != seen[1], f"{where}: colours can be chosen: {seen}")


def touch(tab, check, where):
    """A finger on a bar of the strip."""
    x, y = centre(tab, "#episodes .strip svg")
    tab.touch(x, y)
    story = tab.run("document.querySelector('#episodes .story').innerText")
    check("Step 1 of" not in story, f"{where}: a tap goes to a step: {story}")


def run(binary, folder, pictures):
    check = Checks()
    pages = make.pages(binary, folder)
    with browser.Browser() as tab:
        for name, sections in pages.items():
            for dark in [False, True]:
                for width in [WIDE, NARROW]:
                    where = f"{name}, {'dark' if dark else 'light'}, {width} px"
                    tab.open(folder / f"{name}.html", width, HEIGHT, dark)
                    if pictures:
                        tab.screenshot(pictures / f"{name}-{'dark' if dark else 'light'}-{width}.png", full=True)
                    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
                    look(tab, check, name, sections, where)
                    if name in ["model", "policy", "watching", "nasty"]:
                        use(tab, check, where)
                    if name in ["model", "policy"] and width == NARROW:
                        touch(tab, check, where)
                    check(not tab.complaints(), f"{where}: the console is silent: {tab.complaints()}")
        tab.open(folder / "nasty.html", WIDE, HEIGHT, False)
        tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        check(make.NASTY in tab.run("document.querySelector('#data-title').parentNode.textContent"), "names are shown unchanged")
        tab.open(folder / "model.html", WIDE, HEIGHT, False, scripts=False)
        root = tab.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
        found = tab.call("DOM.querySelectorAll", nodeId=root, selector="noscript li")["nodeIds"]
        check(len(found) >= 3, "without JavaScript the main numbers are there")
    print(f"{check.made} claims about {len(pages)} pages, {len(check.failed)} of them false")
    return 1 if check.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--pictures", type=Path, help="folder for a picture of every page")
    args = parser.parse_args()
    if not browser.find() and shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if not browser.find():
        print("pages are not tested: there is no Chromium; install it, or name one in CHROMIUM")
        return 0
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        return run(args.binary.resolve(), Path(folder), args.pictures)


if __name__ == "__main__":
    sys.exit(main())
