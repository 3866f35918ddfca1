"""What derivatives cost, in operations: a gradient with its value 5 times the function, a Hessian product 10 times.

Griewank and Walther, "Evaluating Derivatives" (2008), chapter 4, where an operation has a weight. Here it is 1, but for
u**v with a variable exponent, which is exp(v log(u)) and a choice at u = 0, so 4, and for truth values (comparisons,
connectives), which have none, in functions and derivatives alike. ROOM matters for functions of one or two heads only.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad as sa
from benchmarks.problems import chained_rosenbrock, lennard_jones_energy, make_network
from codegen.heads import Alias
from codegen.ir.program import reachable
from tests.support import objectives
from tests.support.objectives.corpus import PROBLEMS

for module in pkgutil.iter_modules(objectives.__path__):
    importlib.import_module(f"tests.support.objectives.{module.name}")

GRADIENT, HESSIAN_PRODUCT, POWER, ROOM = 5, 10, 4, 2
OF_POWERS = "gulf_research"  # a sum of exp(-|u|**v/w): its Hessian product takes 10.04 times; see "powers" below
RANDOM = np.random.default_rng(3)

Function = Callable[..., Any]
CASES: dict[str, tuple[Function, np.ndarray]] = {
    **{name: (row.objective, row.start) for name, row in PROBLEMS.items()},
    "chained_rosenbrock": (chained_rosenbrock, RANDOM.normal(size=20)),
    "lennard_jones": (lennard_jones_energy, RANDOM.normal(size=12)),
    "tanh_network": (make_network((4, 6, 6, 1)), RANDOM.normal(size=4)),
    "logsumexp": (lambda x: np.log(np.exp(x).sum()), RANDOM.normal(size=10)),
    "speelpenning": (np.prod, RANDOM.normal(size=12)),
    "quadratic_form": (lambda x: x @ np.arange(64.0).reshape(8, 8) @ x, RANDOM.normal(size=8)),
    "determinant": (lambda x: np.linalg.slogdet(x.reshape(4, 4))[1], RANDOM.normal(size=16) + 4 * np.eye(4).ravel()),
    "branches": (lambda x: np.where(x > 0, x * np.exp(x), np.sin(x)).sum(), RANDOM.normal(size=6)),
}


def operations(f: Function, *args: np.ndarray) -> int:
    """Return the operations of a function, with the weights that are stated above."""
    traced = sa.trace(f, *args)
    graph, counted = traced.graph, 0
    for node in reachable(graph, traced.outputs.flat):
        head, operands = graph.heads[node], graph.operands[node]
        if operands and head is not Alias and not graph.is_boolean(node):
            counted += POWER if head is sp.Pow and operands[1] not in graph.atoms else 1
    return counted


def product_with_hessian(f: Function) -> Function:
    return lambda x, v: sa.hvp(f, (x,), (v,))


def too_dear(derived: dict[str, int], plain: dict[str, int], factor: int) -> list[str]:
    """Return the cases beyond the bound, or nothing; with the worst ratios, for the message."""
    ratios = sorted(((derived[name] / max(1, plain[name]), name) for name in plain), reverse=True)
    beyond = [name for name in plain if derived[name] > factor * plain[name] + ROOM]
    worst = [f"{name}: {plain[name]} -> {derived[name]}, {ratio:.2f} times" for ratio, name in ratios[:8]]
    return [", ".join(beyond), *worst] if beyond else []


@cache
def plain_operations(part: int) -> dict[str, int]:
    """The operations of every fourth case."""
    return {name: operations(*CASES[name]) for name in list(CASES)[part::4]}


def test_there_are_cases() -> None:
    assert len(CASES) > 340


@pytest.mark.parametrize("part", range(4))
@pytest.mark.thinned
def test_gradients_and_hessian_products_of_every_case(part: int) -> None:
    plain = plain_operations(part)
    gradient = {name: operations(sa.value_and_grad(CASES[name][0]), CASES[name][1]) for name in plain}
    product = {name: operations(product_with_hessian(CASES[name][0]), *2 * CASES[name][1:]) for name in plain}
    plain_products = {name: count for name, count in plain.items() if name != OF_POWERS}
    for derived, counts, factor in ((gradient, plain, GRADIENT), (product, plain_products, HESSIAN_PRODUCT)):
        report = too_dear(derived, counts, factor)
        assert not report, "\n".join(report)


def test_a_bound_that_is_exceeded_is_reported_with_the_ratios() -> None:
    found = too_dear({"a": 30, "b": 4}, {"a": 4, "b": 3}, GRADIENT)
    assert found == ["a", "a: 4 -> 30, 7.50 times", "b: 3 -> 4, 1.33 times"]


@pytest.mark.parametrize("part", range(4))
@pytest.mark.thinned
def test_a_pushforward_is_not_dearer_than_a_gradient_may_be(part: int) -> None:
    plain = plain_operations(part)
    pushed = {
        name: operations(lambda x, v, f=CASES[name][0]: sa.jvp(f, (x,), (v,)), *2 * CASES[name][1:]) for name in plain
    }
    report = too_dear(pushed, plain, GRADIENT)
    assert not report, "\n".join(report)


# What the page of derivatives says of functions that are mostly one dear operation: gradient with value, hvp, jvp.
DEAR: dict[str, tuple[Function, tuple[int, int, int]]] = {
    "powers": (lambda a, b: a**b, (11, 29, 12)),
    "arctan2": (np.arctan2, (6, 20, 7)),
    "hypot": (np.hypot, (5, 12, 5)),
    "remainder": (np.remainder, (6, 10, 7)),
    "maximum": (np.maximum, (5, 10, 5)),
    "logaddexp": (np.logaddexp, (5, 10, 6)),
    "max": (lambda a, b: np.max(a) * b[0], (5, 10, 7)),
    "prod": (lambda a, b: np.prod(a) * b[0], (5, 12, 5)),
    "clip": (lambda a, b: np.clip(a, b, 1.0), (5, 10, 5)),
    "divmod": (lambda a, b: np.divmod(a, b)[1], (6, 10, 7)),
}


@pytest.mark.parametrize("name", DEAR)
def test_operations_that_are_dear(name: str) -> None:
    head, bounds = DEAR[name]
    x = np.linspace(0.5, 1.0, 24)

    def total(x: Any) -> Any:
        return np.sum(head(x[1:], x[:-1]))

    derived = operations(sa.value_and_grad(total), x), operations(product_with_hessian(total), x, x)
    pushed = operations(lambda x, v: sa.jvp(total, (x,), (v,)), x, x)
    ratios = np.array([*derived, pushed]) / operations(total, x)
    assert np.all(ratios <= bounds), ratios


def test_the_cost_of_a_gradient_does_not_depend_on_the_number_of_inputs() -> None:
    f = chained_rosenbrock

    def ratio(n: int) -> float:
        return operations(sa.value_and_grad(f), np.ones(n)) / operations(f, np.ones(n))

    assert ratio(1000) < 1.02 * ratio(10) < 5
