"""Every public name says in a sentence what it is, shows an example that is run, and names the errors it raises."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from importlib import import_module
from typing import Any

import pytest

SHOWN_BY = {
    "symad.results.BoxVerification": "symad.verify",
    "symad.results.CheckedAnswer": "symad.check_derivative",
    "symad.results.CheckedTrace": "symad.check_trace",
    "symad.results.Choice": "symad.choices",
    "symad.results.CodeReading": "symad.read_llvm",
    "symad.results.Comparison": "symad.compare",
    "symad.results.CompilationPlan": "symad.plan",
    "symad.results.Derivation": "symad.steps",
    "symad.results.Drawing": "symad.draw",
    "symad.results.Exercise": "symad.exercise",
    "symad.results.Exhibit": "symad.exhibit",
    "symad.results.Expansion": "symad.expand",
    "symad.results.Explanation": "symad.explain",
    "symad.results.Growth": "symad.growth",
    "symad.results.InitialValueProblem": "symad.ode",
    "symad.results.MixedPartials": "symad.partials",
    "symad.results.Solutions": "symad.worksheet",
    "symad.results.Spy": "symad.spy",
    "symad.results.StepErrors": "symad.step_errors",
    "symad.results.TaylorPolynomial": "symad.taylor",
    "symad.results.Verification": "symad.verify",
    "symad.results.Worksheet": "symad.worksheet",
    "codegen.RolledProgram": "codegen.rolled_text",
}  # classes that nobody makes by hand: a function returns or takes one, and its example is theirs

SOURCES = {
    "hessian": "Gower and",
    "jacobian": "Griewank and Walther",
    "laplacian": "Dangel",
    "partials": "Griewank, Utke,",
    "root": "Griewank and Walther",
    "taylor": "Griewank and Walther",
}  # what rests on a published method names it; the rest are definitions, or compositions of these

PUBLIC = {
    f"{package}.{name}": getattr(import_module(package), name)
    for package in ("symad", "symad.errors", "symad.results", "codegen")
    for name in import_module(package).__all__
}
DOCUMENTED = {
    name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing) or inspect.isroutine(thing)
}  # the rest are the module of errors and the text of the version


def is_error(thing: Any) -> bool:
    """Whether it is an error or a warning: its sentence says when it is raised, and no user makes one."""
    return inspect.isclass(thing) and issubclass(thing, (Exception, Warning))


def raised(thing: Any) -> set[str]:
    """Return the errors that the body of a function raises itself."""
    body = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    calls = [node.exc for node in ast.walk(body) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    names = [call.func.id for call in calls if isinstance(call.func, ast.Name)]
    return {name for name in names if name.endswith("Error")}


def test_what_has_no_docstring_is_known() -> None:
    assert PUBLIC.keys() - DOCUMENTED.keys() == {"symad.__version__", "symad.errors", "symad.results"}
    assert len(DOCUMENTED) > 110


@pytest.mark.parametrize("name", DOCUMENTED)
def test_it_begins_with_one_sentence(name: str) -> None:
    own = vars(DOCUMENTED[name]).get("__doc__") if inspect.isclass(DOCUMENTED[name]) else DOCUMENTED[name].__doc__
    sentence, _, rest = inspect.cleandoc(own or "").partition("\n")
    assert re.fullmatch(r"[\w`(].*[.:]", sentence), sentence
    assert not rest or rest.startswith("\n"), "a blank line stands below the sentence"


@pytest.mark.parametrize("name", [name for name, thing in DOCUMENTED.items() if not is_error(thing)])
def test_an_example_is_run(name: str) -> None:
    """Its docstring has one, or that of the function that returns it; pytest runs all of them."""
    shown = DOCUMENTED[name]
    if name in SHOWN_BY:
        assert ">>>" not in (shown.__doc__ or ""), "it has an example of its own: SHOWN_BY does not need it"
        shown = PUBLIC[SHOWN_BY[name]]
        assert name.rpartition(".")[2] in f"{inspect.signature(shown)} {shown.__doc__}"
    assert ">>> " in (shown.__doc__ or "")


@pytest.mark.parametrize("name", [name for name, thing in DOCUMENTED.items() if inspect.isfunction(thing)])
def test_its_errors_are_named(name: str) -> None:
    thing = DOCUMENTED[name]
    assert {error for error in raised(inspect.unwrap(thing)) if error not in (thing.__doc__ or "")} == set()


@pytest.mark.parametrize("name", SOURCES)
def test_the_source_of_its_method_is_named(name: str) -> None:
    assert re.search(rf"{SOURCES[name]}.*\b(19|20)\d\d\b", PUBLIC[f"symad.{name}"].__doc__ or "", re.DOTALL)
