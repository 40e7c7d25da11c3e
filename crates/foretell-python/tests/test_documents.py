"""The code of the guide, the READMEs and the examples runs."""

import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

import foretell as ft

PACKAGE = Path(__file__).parents[1]
ROOT = PACKAGE.parents[1]
EXAMPLES = sorted((PACKAGE / "examples").glob("*.py"))


def blocks(document):
    return re.findall(r"^```python\n(.*?)^```", document.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", [ROOT / "docs" / "python.md", ROOT / "README.md", PACKAGE / "README.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_code_of_documents_runs(document):
    logs = ft.sample("colored-gridworld", episodes=1000, seed=1)
    for name in ("walks.csv", "walks.parquet"):
        logs.write(name)
    names = {}
    assert blocks(document)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "only .* steps of these logs")
        for block in blocks(document):
            exec(compile(block, str(document), "exec"), names)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
