"""Old names warn at the user's line, for two minor releases, and stand for what took their place."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad
import symad as sa
from codegen.later import OldName
from symad.old_names import OLD_NAMES

KEPT = 2  # minor releases at least, between that which deprecates a name and that which has it no longer
X, V = np.array([2.0, 3.0]), np.array([1.0, -1.0])
PROBES = np.array([[1.0, -1.0], [1.0, 1.0]])


def cubic(x: Any) -> Any:
    return x[0] ** 2 * x[1]


def pair(x: Any) -> Any:
    return np.stack([x[0] * x[1], x[1] ** 2])


def old(name: str) -> Any:
    """Return what an old name stands for, which warns at the line below."""
    with pytest.warns(DeprecationWarning, match=f"^{name} is deprecated since .*; write ") as told:
        value = getattr(sa, name)
    assert [Path(each.filename) for each in told] == [Path(__file__)]
    return value


BOTH: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "biharmonic": (lambda f: f(cubic)(X), lambda: sa.laplacian(cubic, power=2)(X)),
    "derivative_along": (lambda f: f(cubic, (X,), (V,), 3), lambda: sa.partials(cubic, 3, along=V)(X)),
    "derivative_tensor": (lambda f: f(pair, 2)(X), lambda: sa.partials(pair, 2)(X)),
    "enclose_range": (
        lambda f: [float(ball.upper()) for ball in f(sa.compile(np.sin, 1.0), (0, 1), pieces=4)],
        lambda: [float(ball.upper()) for ball in sa.enclose(sa.compile(np.sin, 1.0), box=(0, 1), pieces=4)],
    ),
    "hutchinson_trace": (
        lambda f: [f(pair, X, PROBES), f(pair, X, PROBES, mode="rev")],
        lambda: [np.mean([np.sum(v * sa.jvp(pair, (X,), (v,))[1]) for v in PROBES])] * 2,
    ),
    "loops": (lambda f: f(cubic, X).chosen, lambda: sa.plan(cubic, X).chosen),
    "mixed_derivative": (lambda f: f(cubic, (0, 1))(X), lambda: sa.partials(cubic, (0, 1))(X)),
    "mixed_partials": (lambda f: f(cubic, X, 2).exact, lambda: sa.partials(cubic, 2, mode="interpolation")(X).exact),
    "sum_gradient": (lambda f: f(pair)(X), lambda: sa.grad(lambda x: np.sum(pair(x)))(X)),
    "taylor_polynomial": (lambda f: f(cubic, X, 3).parts[3], lambda: sa.taylor(cubic, (X,), None, 3).parts[3]),
    "vhv": (
        lambda f: [f(cubic, (X,), (V,)), f(lambda x, y: x * y, (2.0, 3.0), (1.0, 2.0), mode="nested")],
        lambda: [sa.partials(cubic, 2, along=V)(X), 4.0],
    ),
}


@pytest.mark.parametrize("name", OLD_NAMES)
def test_an_old_name_warns_and_is_what_took_its_place(name: str) -> None:
    value, place = old(name), OLD_NAMES[name].place
    assert name not in (*sa.__all__, *dir(sa))
    if name in BOTH:
        by_old_name, by_new_name = BOTH[name]
        np.testing.assert_array_equal(by_old_name(value), by_new_name())
    else:
        module, attribute = place.split(":")
        assert OLD_NAMES[name].instead == f"{module}.{attribute}"
        assert value is getattr(import_module(module), attribute)
        assert attribute in import_module(module).__all__


def test_it_warns_each_time_and_in_from_imports() -> None:
    assert old("Trace") is old("Trace")
    with pytest.warns(DeprecationWarning, match=r"Trace is deprecated.*write symad\.results\.Trace") as told:
        exec("from symad import Trace")
    assert {each.filename for each in told} == {"<string>"}


@pytest.mark.parametrize("name", OLD_NAMES)
def test_a_name_is_kept_for_two_releases_and_no_longer(name: str) -> None:
    entry, now = OLD_NAMES[name], number(symad.__version__)
    assert number(entry.since) + KEPT <= number(entry.until)
    assert now < number(entry.until)


def number(release: str) -> int:
    """Return the number of a minor release, counted through; a major one is as far as any number of them."""
    major, minor = release.split(".")[:2]
    return 1000 * int(major) + int(minor)


def test_an_old_name_in_a_compiled_function_warns_at_its_own_line_only() -> None:
    with pytest.warns(DeprecationWarning, match="^vhv is deprecated") as told:
        assert sa.jit(lambda x: sa.vhv(cubic, (x,), (x,)))(X) == 72.0
    assert {Path(each.filename) for each in told} == {Path(__file__)}


def test_the_message_says_what_until_when_and_what_to_write() -> None:
    with pytest.warns(DeprecationWarning, match=r"^gradient .* since 0\.3, and goes with 0\.5; write grad\(f\)$"):
        assert OldName("grad(f)", "symad:grad", since="0.3", until="0.5").value("gradient") is sa.grad


@pytest.mark.parametrize("options", [{"chunk": 2}, {"lanes": 4}, {"tier": "llvm"}], ids=str)
def test_an_old_option_warns_and_changes_no_bit(options: dict[str, Any]) -> None:
    kernels, said = [], f"^{next(iter(options))}=.* is deprecated since .*; write the call without it"
    for compiled in (sa.compile, lambda f, x, **options: sa.jit(f, **options)):
        with pytest.warns(DeprecationWarning, match=said) as told:
            kernels.append(compiled(cubic, X, **options))
        assert [Path(each.filename) for each in told] == [Path(__file__)]
    with pytest.warns(DeprecationWarning, match=said):
        assert kernels[1](X) == kernels[0](X) == sa.compile(cubic, X)(X)
