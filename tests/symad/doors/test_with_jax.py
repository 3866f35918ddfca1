"""Compiled functions inside JAX: the numbers of JAX's own derivatives, in every mix of its transforms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad as sa
from codegen.machine.calls.conventions import HANDLER
from symad.errors import ArgumentError

jax = pytest.importorskip("jax")
jnp = jax.numpy


def formula(x: Any, a: Any, xp: Any) -> Any:
    return xp.sum(xp.sin(x) * x[0] * a) + a**3


def vector(x: Any, a: Any, xp: Any) -> Any:
    return xp.stack([x[0] * x[1] * a, xp.exp(x[1]), a * a])


@pytest.fixture(autouse=True)
def _double() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


X, A = np.array([0.3, 0.4, 0.5]), 1.3
KEPT: list[Any] = []  # XLA never forgets what was registered

TRANSFORMS = {
    "value": lambda f: f,
    "gradient": lambda f: jax.grad(lambda x, a: jnp.sum(f(x, a)), (0, 1)),
    "jacobian": lambda f: jax.jacrev(f),
    "mixed": lambda f: jax.jit(jax.jacfwd(jax.jacrev(f, 1), 0)),
    "hessian": jax.hessian,
    "around": lambda f: jax.grad(lambda x, a: jnp.sum(jax.hessian(f)(jnp.sin(x), a) ** 2)),
    "jvp": lambda f: lambda x, a: jax.jvp(f, (x, a), (jnp.ones(3), 2.0)),
    "mapped": lambda f: lambda x, a: jax.vmap(jax.jacrev(f), (0, None))(jnp.stack([x, 2 * x]), a),
    "mapped twice": lambda f: (
        lambda x, a: jax.jit(jax.vmap(jax.vmap(f, (None, 0)), (0, None)))(jnp.stack([x, 2 * x]), jnp.arange(4.0))
    ),
}


@pytest.mark.parametrize("f", [formula, vector], ids=["scalar", "vector"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.thinned
def test_as_jax_itself(f: Any, transform: str) -> None:
    ours = sa.to_jax(lambda x, a: f(x, a, np), np.zeros(3), 1.0)
    found, want = (TRANSFORMS[transform](g)(X, A) for g in (ours, lambda x, a: f(x, a, jnp)))
    for part, exact in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        assert (part.shape, part.dtype) == (exact.shape, exact.dtype)
        np.testing.assert_allclose(part, exact, rtol=1e-13, atol=1e-14)


def test_many_points_have_the_bits_of_a_batch() -> None:
    points = np.random.default_rng(0).normal(size=(100_000, 3))
    kernel = sa.compile(lambda x: formula(x, 2.0, np), np.zeros(3))
    found = jax.jit(jax.vmap(sa.to_jax(lambda x: formula(x, 2.0, np), np.zeros(3))))(points)
    assert np.asarray(found).tobytes() == kernel.batch(points).tobytes()


def test_one_point_has_the_bits_of_a_call() -> None:
    def f(x: Any) -> Any:
        return formula(x, 2.0, np)

    kernel, ours, again = sa.compile(f, X), sa.to_jax(f, X), sa.to_jax(f, X, calls="python")
    for point in np.random.default_rng(1).normal(size=(50, 3)):
        bits = np.float64(kernel(point)).tobytes()
        assert [np.asarray(g(point)).tobytes() for g in (ours, jax.jit(ours), again)] == [bits] * 3


def test_xla_calls_a_kernel_without_python() -> None:
    def calls(f: Any, x: Any) -> list[bool]:
        text = jax.jit(f).lower(x).as_text()
        return [name in text for name in ("symad_", "python")]

    ours = sa.to_jax(lambda x: np.sum(x**2), X)
    assert calls(ours, X) == [True, False]
    assert calls(jax.grad(ours), X) == [True, False]
    assert calls(jax.vmap(ours), np.ones((2, 3))) == [False, True]
    assert calls(sa.to_jax(lambda x: np.sum(x**2), X, calls="python"), X) == [False, True]
    jax.config.update("jax_enable_x64", False)
    assert calls(ours, np.float32(X)) == [False, True]


def test_an_interface_that_kernels_do_not_know_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    header = tmp_path / "xla/ffi/api/c_api.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define XLA_FFI_API_MAJOR 1\n")
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    with pytest.raises(ArgumentError, match=r'version 1 of .* and not 0; to_jax\(..., calls="python"\)'):
        sa.to_jax(lambda x: x * x, 1.0)
    assert sa.to_jax(lambda x: x * x, 1.0, calls="python")(3.0) == 9.0
    with pytest.raises(ArgumentError, match="calls='c'"):
        sa.to_jax(lambda x: x * x, 1.0, calls="c")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("result", "arguments"),
    [
        (jax.ShapeDtypeStruct((2,), np.float64), (np.zeros(3), 1.0)),
        (jax.ShapeDtypeStruct((2,), np.float64), (np.zeros((1, 2)), 1.0)),
        (jax.ShapeDtypeStruct((2,), np.float64), (np.zeros(2, np.float32), 1.0)),
        (jax.ShapeDtypeStruct((2,), np.float64), (np.zeros(2),)),
        (jax.ShapeDtypeStruct((), np.float64), (np.zeros(2), 1.0)),
    ],
)
def test_buffers_that_do_not_fit_are_errors_of_xla(result: Any, arguments: Any) -> None:
    found = sa.compile(lambda x, a: a * x, np.zeros(2), 1.0).callback(HANDLER)
    name = f"symad_test_{id(found)}"
    KEPT.append(found)
    jax.ffi.register_ffi_target(name, found.capsule, platform="cpu")
    fits = jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((2,), np.float64))
    assert fits(np.arange(2.0), 3.0).tolist() == [0.0, 3.0]
    with pytest.raises(Exception, match=r"takes \(2,\), \(\) and gives \(2,\), all of them float64"):
        jax.block_until_ready(jax.ffi.ffi_call(name, result)(*arguments))


def test_single_precision_and_whole_numbers() -> None:
    f = sa.to_jax(lambda x, n: np.sum(x**2) * n, np.zeros(2), 1.0)
    assert jax.grad(f)(np.array([1.0, 2.0]), 3).tolist() == [6.0, 12.0]
    jax.config.update("jax_enable_x64", False)
    found = jax.grad(f)(jnp.array([1.0, 2.0]), 3)
    assert (found.dtype, found.tolist()) == (jnp.float32, [6.0, 12.0])


@pytest.mark.parametrize("kinds", [("float32", "float64"), ("float64", "float32"), ("bfloat16",), ("float32", "int32")])
def test_numbers_are_promoted_as_by_jax(kinds: tuple[str, ...]) -> None:
    given = [jnp.asarray(1.5, dtype=kind) for kind in kinds]
    ours, theirs = sa.to_jax(lambda *x: sum(x), *(1.0 for _ in kinds)), lambda *x: sum(x)
    assert (ours(*given), ours(*given).dtype) == (theirs(*given), theirs(*given).dtype)
    assert jax.grad(ours)(*given).dtype == jax.grad(theirs)(*given).dtype


def test_a_derivative_of_symads_is_differentiated_by_jax() -> None:
    f = sa.to_jax(lambda x: sa.hessian(lambda y: np.sum(y**3 * y[0]))(x), np.zeros(2))
    found = jax.jacobian(f)(X[:2])
    assert found.shape == (2, 2, 2)
    np.testing.assert_allclose(found[1, 1], [6 * X[1], 6 * X[0]], rtol=1e-14)


def test_what_does_not_fit_is_refused() -> None:
    f = sa.to_jax(lambda x: np.sum(x), np.zeros(2))
    with pytest.raises(
        ArgumentError, match=r"arguments of shapes \(3,\): the function was made for \(2,\); use jax.vmap"
    ):
        f(np.zeros(3))
    for given in (np.array([1j, 2.0]), jax.numpy.array([1j, 2.0])):
        with pytest.raises(ArgumentError, match="dtype complex128"):
            f(given)
    with pytest.raises(ArgumentError, match="with 2 example arguments"):
        sa.to_jax(lambda x: x, 1.0, 2.0)


def test_containers() -> None:
    def both(p: Any) -> Any:
        return {"product": p["a"] * p["b"][0], "squares": (p["a"] ** 2, p["b"][0] ** 2)}

    point = {"a": 2.0, "b": [np.array([3.0, 1.0])]}
    f = sa.to_jax(both, point)
    found, expected = f(point), both(point)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for ours, plain in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(ours, plain)
    slope = jax.jit(jax.grad(lambda p: f(p=p)["product"].sum() + f(p)["squares"][0]))(point)
    np.testing.assert_allclose(slope["a"], 4.0 + 4.0, rtol=1e-15)
    np.testing.assert_allclose(slope["b"][0], [2.0, 2.0], rtol=1e-15)
    with pytest.raises(ArgumentError, match="arguments of structure"):
        f({"a": 2.0})
