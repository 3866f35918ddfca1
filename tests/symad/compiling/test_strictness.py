"""With strictness on, as in every test, what goes wrong inside raises; with it off it is gone around with a warning."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.ir.strictness
import codegen.ir.unroll
import codegen.loops.emit.rolled_code
import codegen.loops.optimise.contraction
import codegen.loops.optimise.draft
import codegen.loops.place.place_nodes
import codegen.loops.roll
import codegen.machine.build
import symad as sa
import symad.compiling.candidates
import symad.derivatives.loops.columns_of_regions
import symad.derivatives.loops.pullback
import symad.tracing.control.derivative_blocks
import symad.tracing.control.written_bodies
import symad.tracing.numpy.ufuncs
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import RolledProgram
from codegen.ir.strictness import checked, fall_back, strict
from symad.errors import FallbackWarning, InvariantError, LimitError

X = np.linspace(0.1, 1.0, 60)
BROKEN = Program([sp.Symbol, sp.sin], [(), (1,)], {0: sp.Symbol("x")}, (Input("x", ()),), (Output((), (1,)),), "f")


@pytest.fixture
def off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strictness off, and nothing told yet."""
    monkeypatch.setenv("SYMAD_STRICT", "0")
    monkeypatch.setattr(codegen.ir.strictness, "_warned", OrderedDict())


def fails(error: Exception) -> Callable[..., object]:
    """Return a part of ours that meets a defect: its code says that it is in symad's folder."""
    names = {"error": error}
    exec(compile("def broken(*args, **options): raise error", symad.__file__, "exec"), names)
    return names["broken"]


def energy(x: np.ndarray) -> object:
    return np.sum(np.sin(x) * x[::-1] ** 2)


def written(x: np.ndarray) -> object:
    return sa.sum_over(lambda a, b: a * np.sin(b), x, x[::-1])


def test_the_environment_is_read_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert strict()
    for value, expected in (("0", False), ("", False), ("1", True), ("yes", True)):
        monkeypatch.setenv("SYMAD_STRICT", value)
        assert strict() == expected
    monkeypatch.delenv("SYMAD_STRICT")
    assert not strict()


def test_processes_of_tests_are_strict() -> None:
    code = "import codegen.ir.strictness as s, sys; sys.exit(not s.strict())"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_checked_programs_are_looked_at_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvariantError, match=r"^f, row 1: operands come before .*, after a pass; report it"):
        checked(BROKEN, "a pass")
    monkeypatch.setenv("SYMAD_STRICT", "0")
    assert checked(BROKEN, "a pass") is BROKEN


def test_one_warning_for_each_function_and_reason(off: None) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for function, reason, error in 2 * (
            ("f", "a reason", None), ("g", "a reason", None), ("f", "another", None), ("f", "a reason", KeyError("k")),
        ):  # fmt: skip
            fall_back(function, reason, error)
    assert [str(warning.message).partition(";")[0] for warning in told] == [
        "f: a reason", "g: a reason", "f: another", "f: a reason (KeyError: 'k')",
    ]  # fmt: skip
    assert all(issubclass(warning.category, sa.errors.FallbackWarning) for warning in told)
    assert "Please report it" in str(told[0].message)
    assert "SYMAD_STRICT=1" in str(told[0].message)


def test_not_more_warnings_are_remembered_than_a_number(off: None) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for k in [*range(300), 299, 0]:
            fall_back(f"f{k}", "a reason")
    assert len(told) == 301  # f299 is remembered, f0 is not
    assert len(codegen.ir.strictness._warned) == codegen.ir.strictness.REMEMBERED


def test_strictness_raises_the_error_that_was_met() -> None:
    with pytest.raises(KeyError, match="k"):
        fall_back("f", "a reason", KeyError("k"))
    with pytest.raises(InvariantError, match="f: a reason; report it"):
        fall_back("f", "a reason")


def compiled_alike(f: Callable[..., object], **options: str) -> None:
    """What is compiled has the numbers of f, and one warning is given, that names it."""
    with pytest.warns(FallbackWarning) as told:
        found = sa.compile(f, X, **options)(X)
    assert len(told) == 1
    assert np.isclose(found, f(X), rtol=1e-13)


def test_loops_that_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen.loops.roll, "agree", lambda *_: False)
    with pytest.raises(InvariantError, match="energy: the loops found did not give its values at a random point"):
        sa.compile(energy, X, roll="always")


def test_loops_that_do_not_agree_are_left_with_a_warning(off: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen.loops.roll, "agree", lambda *_: False)
    compiled_alike(lambda x: energy(np.concatenate([x] * 5)))


def steps_on_a_grid(x: np.ndarray, count: int = 30) -> object:
    """A chain whose body has loops to be found."""
    step = lambda u, _: (u + 0.1 * np.sin(np.roll(u, 1) * u) * (np.roll(u, -1) - u), None)  # noqa: E731
    return np.sum(sa.scan(step, np.concatenate([x] * 4), None, count)[0])


def test_long_bodies_whose_loops_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen.loops.roll, "agree", lambda *_: False)
    with pytest.raises(InvariantError, match=r"test_strictness.py:\d+: the loops found in its body did not give"):
        sa.compile(steps_on_a_grid, X, roll="always")


def test_long_bodies_are_left_with_a_warning(off: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen.loops.roll, "agree", lambda *_: False)
    compiled_alike(steps_on_a_grid)


DEFECTS = [
    KeyError("lost"),
    AssertionError("never"),
    TypeError("ours"),
    InvariantError("broken"),
]


@pytest.mark.parametrize("error", DEFECTS, ids=lambda error: type(error).__name__)
def test_defects_in_bodies_of_loops(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symad.tracing.control.written_bodies, "_program", fails(error))
    with pytest.raises(type(error), match=str(error.args[0])):
        sa.compile(written, X)


def test_defects_in_bodies_of_loops_are_gone_around(off: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symad.tracing.control.written_bodies, "_program", fails(KeyError("lost")))
    with pytest.warns(FallbackWarning, match=r"test_strictness.py:\d+: its body cannot be traced \(KeyError: 'lost'\)"):
        kernel = sa.compile(written, X)
    assert np.isclose(kernel(X), written(X), rtol=1e-13)
    sa.compile(written, X)  # told once


@pytest.mark.parametrize(
    "error", [ValueError("of the user"), KeyError("of the user"), ZeroDivisionError("of the user")]
)
@pytest.mark.parametrize("environment", ["0", "1"])
def test_errors_of_the_user_are_no_defects(error: Exception, environment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come from the first repetition, as they do in Python; nothing warns."""
    monkeypatch.setenv("SYMAD_STRICT", environment)

    def body(a: object) -> object:
        raise error

    with pytest.raises(type(error), match="of the user"):
        sa.compile(lambda x: sa.sum_over(body, x), X)


@pytest.mark.parametrize("environment", ["0", "1"])
def test_refusals_of_numpy_are_no_defects(environment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMAD_STRICT", environment)
    for body in (lambda a: np.ones((2, 3)) @ np.stack([a, a]), lambda a: a.nothing, lambda a: np.zeros(3)[7] * a):
        with pytest.raises((ValueError, AttributeError, IndexError)):
            sa.compile(lambda x, body=body: np.sum(sa.vmap(body)(x)), X)


def inner_gradient(x: np.ndarray) -> object:
    return np.sum(sa.grad(written)(x) * x)


def test_defects_where_a_function_is_traced_for_its_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symad.tracing.control.derivative_blocks, "_needed", fails(KeyError("lost")))
    with pytest.raises(KeyError, match="lost"):
        sa.compile(inner_gradient, X)


def test_they_are_gone_around(off: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symad.tracing.control.derivative_blocks, "_needed", fails(KeyError("lost")))
    with pytest.warns(FallbackWarning, match="written: it cannot be traced for itself"):
        kernel = sa.compile(inner_gradient, X)
    assert np.isclose(kernel(X), inner_gradient(X), rtol=1e-12)


@pytest.mark.parametrize("error", [LimitError("too much"), InvariantError("broken")], ids=["limit", "invariant"])
def test_derivatives_of_loops_let_through_what_is_no_refusal(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symad.compiling.candidates, "_differentiated", fails(error))
    with pytest.raises(type(error), match=error.what):
        sa.compile(inner_gradient, X)


@pytest.mark.parametrize("error", [KeyError("lost"), LimitError("too much"), InvariantError("broken")])
@pytest.mark.parametrize("environment", ["0", "1"])
def test_a_path_of_nan_hides_no_defect(error: Exception, environment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only NaN can take a path, errors of the user's code give NaN; ours do not."""
    monkeypatch.setenv("SYMAD_STRICT", environment)

    def f(x: object) -> object:
        if x < 0.0:
            return -x
        if x >= 0.0:
            return 2.0 * x
        return np.sinh(x)

    assert np.isnan(sa.compile(f, 1.0)(np.nan))
    monkeypatch.setitem(symad.tracing.numpy.ufuncs.UFUNCS, "sinh", fails(error))
    with pytest.raises(type(error), match=str(error.args[0])):
        sa.compile(f, 1.0)


@pytest.mark.parametrize("environment", ["0", "1"])
def test_better_code_that_cannot_be_made(environment: str, off: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first code stays; that is told, and who waits for the better one gets the error."""
    monkeypatch.setenv("SYMAD_STRICT", environment)
    monkeypatch.setattr(codegen.machine.build, "_optimised", fails(KeyError("lost")))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kernel = sa.compile(energy, X, tier="auto", cache=False)
        with pytest.raises(KeyError, match="lost"):
            kernel.wait()
    texts = [str(warning.message) for warning in told]
    assert len(texts) == (environment == "0")
    assert all(text.startswith("energy: its better machine code cannot be made (KeyError") for text in texts)
    assert kernel.tier == "fast"
    assert np.isclose(kernel(X), energy(X), rtol=1e-13)


def last_first(made: Any) -> Any:
    """A program, or steps, whose last step runs first: what it reads is not there yet."""
    if isinstance(made, tuple) and isinstance(made[0], list | RolledProgram):
        return (last_first(made[0]), *made[1:])
    if isinstance(made, RolledProgram):
        return replace(made, steps=(made.steps[-1], *made.steps[:-1]))
    return [made[-1], *made[:-1]]


PASSES = {
    "codegen.loops.emit.rolled_code.pack": "packing",
    "codegen.loops.place.place_nodes._Placer.rolled": "placing loops",
    "symad.derivatives.loops.hessian_pieces.with_reductions": "writing accumulations as sums",
    "symad.derivatives.loops.hessian_pieces.with_outlined_sums": "cutting bodies at outlined sums",
    "symad.derivatives.loops.pullback.expanded": "expanding what rounds use again",
    "symad.derivatives.loops.pullback.cut_nests": "cutting nests into segments",
    "symad.derivatives.loops.pullback._cut": "cutting chains into segments",
    "codegen.loops.optimise.draft.fused": "dead-code of gradient",
}


@pytest.mark.parametrize("name", PASSES)
def test_the_pass_that_broke_a_program_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, _, last = name.rpartition(".")
    owner: Any = codegen.loops.place.place_nodes._Placer if last == "rolled" else sys.modules[place]
    work = getattr(owner, last)
    monkeypatch.setattr(owner, last, lambda *args: last_first(work(*args)))
    transform = sa.hessian if "hessian" in name else sa.grad
    with pytest.raises(InvariantError, match=f"read only after it is written: .*, after {PASSES[name]}"):
        sa.compile(transform(lambda x: np.log(energy(x))), X, roll="always")


@pytest.mark.parametrize("number", [0, 1])
def test_the_pass_before_lowering_that_broke_a_program_is_named(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = list(codegen.loops.emit.rolled_code.PASSES)
    name, work = passes[number]
    passes[number] = (name, lambda program: last_first(work(program)))
    monkeypatch.setattr(codegen.loops.emit.rolled_code, "PASSES", tuple(passes))
    with pytest.raises(InvariantError, match=f"read only after it is written: .*, after {name}"):
        sa.compile(sa.grad(lambda x: np.log(energy(x))), X, roll="always")


def test_windows_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    work = codegen.loops.optimise.contraction._Mover.steps

    def backwards(mover: Any, steps: Any, counts: tuple[int, ...] = ()) -> Any:
        return work(mover, steps, counts)[:: 1 if counts else -1]

    monkeypatch.setattr(codegen.loops.optimise.contraction._Mover, "steps", backwards)
    with pytest.raises(InvariantError, match="after keeping windows of buffers"):
        sa.compile(lambda x: steps_on_a_grid(x, 200), X)


def test_derivatives_and_traces_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `checked` has been told of, over functions that take many ways to a kernel."""
    seen: set[str] = set()
    for name in ("check_program", "check_rolled"):
        check = getattr(codegen.ir.strictness, name)

        def noting(program: object, after: str = "", check: Callable[..., None] = check) -> None:
            seen.add(after)
            check(program, after)

        monkeypatch.setattr(codegen.ir.strictness, name, noting)
    sa.compile(energy, X, roll="never")
    sa.compile(sa.hessian(energy), X, roll="always")
    sa.compile(sa.derivative(lambda t: energy(t * X)), 0.5, roll="always")
    monkeypatch.setattr(symad.derivatives.loops.columns_of_regions, "FEWEST_OPERATIONS", 0)
    sa.compile(sa.hessian(lambda x: np.sum(sa.fori_loop(0, 20, lambda _, u: u + 0.01 * np.sin(u), x))), X[:5])
    pulled = symad.derivatives.loops.pullback.pullback(sa.compile(written, X).program, [0])
    codegen.ir.unroll.unroll(pulled)
    assert seen >= {
        "writing a trace as rows", "dead-code of gradient", "dead-code of pushforward", "dead-code of pullback",
        "dead-code of scattered matrix", "dead-code of columns", "dead-code of selection",
        "what is to be compiled", "writing loops as straight lines",
    }, seen  # fmt: skip
