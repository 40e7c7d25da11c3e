"""What is public is documented, shown in an example, typed and used."""

import ast
import inspect
import re
from pathlib import Path

import pytest
import whole_api

import foretell as ft

MODULES = [ft, ft.discretise, ft.gymnasium, ft.plot, ft.sklearn]
GUIDE = Path(__file__).parents[3] / "docs" / "python.md"


def public():
    """Public functions and classes by their full names."""
    found = {f"{module.__name__}.{name}": getattr(module, name) for module in MODULES for name in module.__all__}
    return {name: thing for name, thing in found.items() if callable(thing)}


def methods(kind):
    """Public methods that a class has written itself."""
    return {name for name, part in vars(kind).items() if inspect.isfunction(part) or isinstance(part, classmethod) if not name.startswith("_")}


@pytest.mark.parametrize("name", public())
def test_everything_has_words_and_an_example(name):
    thing = public()[name]
    said = inspect.getdoc(thing) or ""
    assert said, name
    if inspect.isclass(thing):
        # Plain results are shown where they come from.
        shown = said + "".join(inspect.getdoc(getattr(thing, method)) or "" for method in methods(thing))
        assert ">>>" in shown or hasattr(thing, "__dataclass_fields__"), name
        for method in methods(thing):
            bases = [base for base in thing.__mro__[1:] if method in vars(base)]
            everywhere = re.findall(r">>> .*|\.\.\. .*", "\n".join(documentation()))
            assert bases or any(f".{method}(" in line for line in everywhere), f"{name}.{method} has no example"
    else:
        assert ">>>" in said, name


def documentation():
    """All docstrings of the package."""
    for module in MODULES:
        for thing in [module, *(getattr(module, name) for name in module.__all__)]:
            yield inspect.getdoc(thing) or ""
            if inspect.isclass(thing):
                yield from (inspect.getdoc(getattr(thing, name)) or "" for name in methods(thing))


def used():
    """Names that the typed sample mentions."""
    tree = ast.parse(Path(whole_api.__file__).read_text())
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("name", public())
def test_the_typed_sample_uses_everything(name):
    thing = public()[name]
    assert name.rsplit(".", 1)[1] in used()
    if inspect.isclass(thing) and not hasattr(thing, "__dataclass_fields__"):
        properties = {part for part, value in vars(thing).items() if isinstance(value, property)}
        inherited = {part for base in thing.__mro__[1:-1] for part in vars(base)}
        missing = (methods(thing) | properties) - inherited - used()
        assert not missing, f"{name}: {missing}"


def test_the_typed_sample_runs(tmp_path):
    whole_api.main(tmp_path)


@pytest.mark.parametrize("name", public())
def test_the_guide_mentions_everything(name):
    short = name.replace("foretell.", "", 1)
    assert re.search(rf"`(ft\.)?{re.escape(short)}\b", GUIDE.read_text()), f"{short} is not in {GUIDE.name}"
