"""The oracle of the tracing tests: NumPy itself. A function is traced, its graph evaluated, the numbers compared."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad.tracing.numpy.protocols  # noqa: F401 - what answers NumPy is there, whichever test comes first
from codegen.evaluation.interpret import evaluate
from symad.tracing.calling.scope import Scope, open_scope
from symad.tracing.values.containers import flatten, from_nodes, to_nodes


def _symbols(scope: Scope, argument: Any, k: int) -> tuple[Any, dict[int, float]]:
    array = np.asarray(argument, dtype=float)
    leaves = [scope.graph.leaf(sp.Symbol(f"x{k}_{j}", real=True)) for j in range(array.size)]
    nodes = np.array(leaves, dtype=np.int64).reshape(array.shape)
    return from_nodes(nodes, scope), dict(zip(leaves, array.ravel().tolist(), strict=True))


def _numbers(scope: Scope, argument: Any, k: int) -> tuple[Any, dict[int, float]]:
    array = np.asarray(argument, dtype=float)
    leaves = [scope.graph.alias(scope.graph.number(value)) for value in array.ravel().tolist()]
    return from_nodes(np.array(leaves, dtype=np.int64).reshape(array.shape), scope), {}


def _compare(make: Callable[..., Any], function: Callable[..., Any], *arguments: Any, rtol: float = 1e-12) -> None:
    with np.errstate(all="ignore"):
        expected, structure = flatten(function(*copy.deepcopy(arguments)))
    with open_scope() as scope:
        traced, values = [], {}
        for k, argument in enumerate(arguments):
            value, known = make(scope, argument, k)
            traced.append(value)
            values |= known
        found, found_structure = flatten(function(*traced))
        assert found_structure == structure
        for wanted, leaf in zip(expected, found, strict=True):
            nodes = to_nodes(leaf, scope, path="result", role="result")
            numbers = np.array(evaluate(scope.graph, nodes.ravel().tolist(), values), dtype=float)
            assert nodes.shape == np.shape(wanted)
            np.testing.assert_allclose(numbers.reshape(nodes.shape), np.asarray(wanted, float), rtol, atol=1e-14)


@pytest.fixture(scope="session")
def agrees_on_symbols() -> Callable[..., None]:
    """Check that a function traced on symbols computes what NumPy computes."""
    return lambda function, *arguments, **options: _compare(_symbols, function, *arguments, **options)


@pytest.fixture(scope="session")
def agrees_on_numbers() -> Callable[..., None]:
    """Check the same for a function called with numbers, where Python's control flow follows the values."""
    return lambda function, *arguments, **options: _compare(_numbers, function, *arguments, **options)


@pytest.fixture
def scope() -> Any:
    """An open scope."""
    with open_scope() as opened:
        yield opened


@pytest.fixture
def symbol(scope: Scope) -> Any:
    """A traced scalar without a value."""
    return from_nodes(np.array(scope.graph.leaf(sp.Symbol("x", real=True))), scope)


@pytest.fixture
def number(scope: Scope) -> Any:
    """A traced scalar whose value is 0.5."""
    return _numbers(scope, 0.5, 0)[0]


@pytest.fixture
def vector(scope: Scope) -> Any:
    """A traced array whose values are 0.5, -1, 2."""
    return _numbers(scope, [0.5, -1.0, 2.0], 0)[0]
