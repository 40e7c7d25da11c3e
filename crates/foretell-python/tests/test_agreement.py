"""One list of parameters: the library's. Signatures, docstrings and recipes agree with it."""

import inspect
import re
import typing

import pytest

import foretell as ft
from foretell import _native
from foretell._options import Learning

EXTRAS = {
    "learn": {"logs", "preset", "refine", "effort", "only", "ensemble", "keep_moments", "memory", "progress"},
    "refine": {"model", "logs", "progress"},
    "plan": {"model", "logs", "preset", "progress"},
    "agent": {"where", "preset", "policy", "observe_reward", "pessimism", "discount", "max_steps", "encode", "seed", "progress"},
}


def fields(*verbs):
    return {name: meaning for verb in verbs for name, meaning in _native.parameters(verb)}


def hints(function):
    """Type hints; those of other packages stand for themselves."""
    return inspect.get_annotations(function, eval_str=True, locals={"Env": object, "Encoder": object})


def documented(function):
    """The parameters of a numpydoc docstring: their types, and what it says of them."""
    section = inspect.getdoc(function).split("Parameters\n----------\n")[1].split("\n\n")[0]
    parts = re.split(r"^(\S.*?) : (.*)$", section, flags=re.MULTILINE)
    return {name: (kind, " ".join(text.split())) for name, kind, text in zip(parts[1::3], parts[2::3], parts[3::3])}


@pytest.mark.parametrize(
    ("verb", "of"),
    [("learn", ("learn", "refine")), ("refine", ("refine",)), ("plan", ("plan",)), ("agent", ("agent",))],
)
def test_signatures_and_docstrings_are_those_of_the_library(verb, of):
    function, known = getattr(ft, verb), fields(*of)
    parameters = inspect.signature(function).parameters
    assert set(parameters) - EXTRAS[verb] == set(known)
    for name in known:
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default is None, "the library has the default"
    said = documented(function)
    defaults = {name: value for verb in of for name, value in _native.defaults(verb).items()}
    for name, meaning in known.items():
        kind, words = said[name]
        assert words.startswith(meaning)
        default = f'"{defaults[name]}"' if isinstance(defaults[name], str) else repr(defaults[name])
        assert kind.endswith(f", default {default}"), name
        # Every choice is explained, or stands as one of another's.
        for choice in re.findall(r"Literal\[(.*?)\]", str(hints(function)[name]))[:1]:
            if name not in ("states", "history_projection"):
                assert all(f'"{value}"' in words for value in re.findall(r"'(.*?)'", choice)), name


def test_every_literal_is_what_the_library_takes():
    """Values of the type hints are accepted, and no others are listed by the error."""
    logs = ft.sample("tiger", episodes=5, max_steps=5, seed=1)
    for function, native in [
        (ft.learn, lambda params: _native.learn(logs._native, "default", params, None, None, None, None, 1 << 30, None)),
        (ft.plan, lambda params: _native.plan(ft.learn(logs, mix=0, rank=1)._native, logs._native, "default", params, None)),
    ]:
        hints = inspect.get_annotations(function, eval_str=True)
        for name, meaning in fields(function.__name__).items():
            options = re.findall(r"Literal\[(.*?)\]", str(hints[name]))
            if not options:
                continue
            values = set(re.findall(r"'(.*?)'", options[0]))
            with pytest.raises(ValueError) as refused:
                native({name: "no such value"})
            assert values == set(re.findall(r"`(.*?)`", str(refused.value))) - {"no such value"}, name
    for name in ("effort", "only"):
        with pytest.raises(ValueError, match=f"{name} = 'no such value': unknown variant") as refused:
            ft.learn(logs, **{name: "no such value"})
        for function in (ft.learn, ft.sklearn.PredictiveStateModel.__init__):
            hint = inspect.get_annotations(function, eval_str=True)[name]
            assert set(re.findall(r"'(.*?)'", str(hint))) == set(re.findall(r"`(.*?)`", str(refused.value))) - {"no such value"}, name


def test_what_other_verbs_take_of_learn_is_typed_as_there():
    ours, hints = inspect.get_annotations(ft.learn, eval_str=True), typing.get_type_hints(Learning)
    assert set(hints) == set(fields("learn"))
    for name, hint in hints.items():
        assert ours[name] == hint | None, name


def test_the_estimator_has_the_parameters_of_learn():
    names = set(inspect.signature(ft.sklearn.PredictiveStateModel).parameters)
    assert names == (set(fields("learn")) - {"seed"}) | {"preset", "refine", "effort", "only", "random_state"}


def test_an_unknown_parameter_is_named():
    logs = ft.sample("tiger", episodes=5, seed=1)
    with pytest.raises(TypeError, match="rnak"):
        ft.learn(logs, rnak=5)
    with pytest.raises(TypeError, match="rnak"):
        ft.search(logs, rnak=5)
    with pytest.raises(ValueError, match="rank = 0: must be at least 1"):
        ft.learn(logs, rank=0)


def test_a_value_of_the_wrong_type_is_named():
    logs = ft.sample("tiger", episodes=5, seed=1)
    with pytest.raises(TypeError, match="rank = 'five': "):
        ft.learn(logs, rank="five", seed=1)
    with pytest.raises(ValueError, match="states = 0: give a positive number or auto"):
        ft.learn(logs, refine=True, states=0)
    with pytest.raises(ValueError, match="history = 'sufix': unknown variant"):
        ft.learn(logs, history="sufix")


def test_the_native_stub_is_complete():
    """Every name of the native part is in its stub, and the other way round."""
    import ast
    from pathlib import Path

    tree = ast.parse((Path(ft.__file__).parent / "_native.pyi").read_text())
    stub = {}
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name, body=body):
                stub[name] = {part.name for part in body if isinstance(part, ast.FunctionDef)} - {"__init__", "__len__"}
            case ast.FunctionDef(name=name):
                stub[name] = None
    real = {name for name in dir(_native) if not name.startswith("_")}
    assert set(stub) == real
    for name, methods in stub.items():
        if methods is not None:
            assert methods == {part for part in dir(getattr(_native, name)) if not part.startswith("_")}, name
