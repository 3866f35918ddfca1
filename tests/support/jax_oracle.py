"""JAX as a second oracle, where it is installed: the same program with `np` exchanged for `jax.numpy`.

`python -m tests.fuzz arrays 1000 --jax`. Stores into an array become copies with `at[].set`; programs that JAX has no
word for, or that are another function there (stores through a view), are skipped, by cause.
"""

from __future__ import annotations

import ast
import importlib
import linecache
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import symad as sa
from tests.support import large_fuzz, nested_fuzz
from tests.support.arrays_fuzz import LARGEST, REFUSED, SAME, Numbers, near, plain, points, quietly
from tests.support.fuzzing import Fuzzer, cause, counted
from tests.support.source_texts import execute

DIRECTIONS = 3  # of second derivatives
Function = Callable[[Numbers], Numbers]


class Copies(ast.NodeTransformer):
    """Stores into a name become new values of the name: `r[i] = a` is `r = PUT(r, i, a)`."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """One store."""
        match node.targets:
            case [ast.Subscript(value=ast.Name())]:
                return self._put(node, node.targets[0], node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """A store of what was there and something else."""
        match node.target:
            case ast.Subscript(value=ast.Name()):
                old = ast.Subscript(node.target.value, node.target.slice, ast.Load())
                return self._put(node, node.target, ast.BinOp(old, node.op, node.value))
        return node

    @staticmethod
    def _put(node: ast.stmt, target: ast.expr, value: ast.expr) -> ast.stmt:
        assert isinstance(target, ast.Subscript)
        assert isinstance(target.value, ast.Name)
        index = target.slice if isinstance(target.slice, ast.Tuple) else ast.Tuple([target.slice], ast.Load())
        slices = ast.parse("np.s_[0]", mode="eval").body
        assert isinstance(slices, ast.Subscript)
        slices.slice = index
        name = target.value.id
        call = ast.Call(ast.Name("PUT", ast.Load()), [ast.Name(name, ast.Load()), slices, value], [])
        return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], call), node)


def with_jax(fuzzer: Fuzzer, name: str) -> Fuzzer:
    """The fuzzer with JAX as its oracle."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    scopes = dict.fromkeys(("arrays", "arrays-modes", "arrays-large"), _arrays_scope) | {
        "nested": _nested_scope,
        "words": _nested_scope,
    }
    scope = scopes[name](jax)
    return replace(fuzzer, check=lambda text: check(jax, text, name, scope))


def check(jax: Any, text: str, name: str, scope: dict[str, Any]) -> str:
    """Compare value, gradient and second derivatives in some directions with JAX; AssertionError where they differ."""
    f, given = _own(text, name)
    names = dict(scope)
    exec(compile(ast.fix_missing_locations(Copies().visit(ast.parse(text))), "<jax>", "exec"), names)
    done = 0

    def other(x: Any) -> Any:
        return jax.numpy.asarray(names["f"](x)).reshape(())

    with quietly():
        for x in given:
            value = plain(f, x)
            if value is None or not abs(value) < LARGEST:
                continue
            units = np.random.default_rng(len(text)).uniform(-1, 1, (DIRECTIONS, x.size))
            try:
                same, gradient = jax.value_and_grad(other)(jax.numpy.asarray(x))
                rows = np.asarray([jax.jvp(jax.grad(other), (x,), (v,))[1] for v in units])
            except Exception as error:
                return f"skipped: {type(error).__name__}"
            if not near(same, value, SAME):
                return "skipped: another function in JAX"
            if not np.isfinite(gradient).all() or not np.isfinite(rows).all():
                return "skipped: not finite in JAX"  # branches that are not taken reach derivatives there
            try:
                _compare(f, x, units, np.asarray(gradient), rows)
            except REFUSED as error:
                return f"refused: {cause(error)}"
            done += 1
    return "right" if done else "without numbers"


def _compare(f: Function, x: Numbers, units: Numbers, gradient: Numbers, rows: Numbers) -> None:
    found = sa.grad(f)(x)
    counted("gradient, JAX")
    assert near(found, gradient, SAME), f"gradient at {x.tolist()}: {found.tolist()}, JAX {gradient.tolist()}"
    for v, row in zip(units, rows, strict=True):
        second = sa.hvp(f, (x,), (v,))
        counted("Hessian along a direction, JAX")
        assert near(second, row, SAME), f"Hessian at {x.tolist()} along {v.tolist()}: {second}, JAX {row}"


def _own(text: str, name: str) -> tuple[Function, list[Numbers]]:
    """The function in NumPy's words, and its points."""
    if name in ("nested", "words"):
        linecache.clearcache()
        return nested_fuzz.load(text, f"<program {hash(text)}>", "symad"), [nested_fuzz.point_of(text)]
    scope = dict(large_fuzz.LargeText.SCOPE)
    execute(text, scope)
    return scope["f"], points(scope["SIZE"], scope["POINTS"])


def _put(array: Any, index: Any, value: Any) -> Any:
    return array.at[index].set(value)


def _arrays_scope(jax: Any) -> dict[str, Any]:
    scope = dict(large_fuzz.LargeText.SCOPE)
    kernel = lambda a: 2.0 * np.eye(len(a)) + jax.numpy.outer(jax.numpy.sin(a), jax.numpy.sin(a))  # noqa: E731
    return {**scope, "np": jax.numpy, "sa": jax, "KERNEL": kernel, "PUT": _put}


def _nested_scope(jax: Any) -> dict[str, Any]:
    def jvp(f: Function, a: Any, v: Any) -> Any:
        a = jax.numpy.asarray(a, dtype=float)
        return jax.jvp(f, (a,), (jax.numpy.broadcast_to(jax.numpy.asarray(v, dtype=float), a.shape),))[1]

    def grad(f: Function, a: Any) -> Any:
        return jax.grad(f)(jax.numpy.asarray(a, dtype=float))

    words = {
        "D": lambda f, a: jvp(f, a, 1.0), "DR": grad, "GRAD": grad, "JVP": jvp, "LIN": jvp,
        "D2": lambda f, a: jvp(lambda b: jvp(f, b, 1.0), a, 1.0),
        "VJP": lambda f, a, w: jax.vjp(f, jax.numpy.asarray(a, dtype=float))[1](w)[0],
        "HESS": lambda f, a: jax.jacfwd(jax.grad(f))(jax.numpy.asarray(a, dtype=float)),
        "HVP": lambda f, a, v: jvp(jax.grad(f), a, v),
    }  # fmt: skip
    return {"np": jax.numpy, "PUT": _put, **words}
