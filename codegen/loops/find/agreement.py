"""Compare a rolled program with its straight lines at a random point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.logic.boolalg import Boolean

from codegen.errors import LimitError
from codegen.evaluation.column_functions import FUNCTIONS
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.evaluation.interpret import evaluate, leaf_number
from codegen.ir.program import Rows
from codegen.ir.region import RolledProgram
from codegen.ir.unroll import unroll
from codegen.limits import EVERY, check
from codegen.loops.find.flat_rows import Flags, FlatRows, flattened, needed, waves
from codegen.loops.find.plain_rows import PlainRows
from codegen.loops.loop import Nodes
from codegen.loops.place.buffers import Arrays

Numbers = NDArray[np.float64]


def straight_values(rows: Rows, flat: FlatRows, inputs: Nodes, numbers: Numbers, wanted: Nodes) -> Numbers:
    """Return the values of the wanted rows, where the inputs have some numbers.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.loops.find.flat_rows import flattened
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [2 * x + 1])
    >>> straight_values(program, flattened(program), np.array([0]), np.array([3.0]), np.array([len(program) - 1]))
    array([7.])
    """
    values, given, asked = np.zeros(len(flat)), np.zeros(len(flat), dtype=bool), np.zeros(len(flat), dtype=bool)
    values[inputs], given[inputs], asked[wanted] = numbers, True, True
    todo = needed(flat, asked, given) & ~given
    leaves = np.nonzero(todo & ~flat.is_operation)[0].tolist()
    values[leaves] = [leaf_number(rows.atoms[row]) for row in leaves]
    is_truth = [issubclass(head, Boolean) and not issubclass(head, sp.Symbol) for head in flat.heads]
    truth = np.array(is_truth, dtype=bool)[flat.codes]
    *many, rest = waves(flat, todo & flat.is_operation, np.zeros(len(flat), dtype=bool))
    with np.errstate(all="ignore"):
        for wave in many:
            check("comparing loops with their rows")
            kinds = flat.codes[wave] * (int(flat.arity.max()) + 1) + flat.arity[wave]
            for kind in np.unique(kinds).tolist():
                _compute(flat, wave[kinds == kind], values, truth)
    _finish(rows, flat, rest, values, truth)
    return values[wanted]


def _compute(flat: FlatRows, rows: Nodes, values: Numbers, truth: Flags) -> None:
    """Compute rows of one head and as many operands."""
    operands = flat.parts(rows)[0].reshape(len(rows), -1)
    columns = []
    for nodes in operands.T:
        one = (nodes == nodes[0]).all()
        column = values[nodes[0]] if one else values[nodes]
        columns.append(np.not_equal(column, 0.0) if truth[nodes[0]] else column)
    values[rows] = FUNCTIONS[flat.heads[flat.codes[rows[0]]]](*columns)


def _finish(rows: Rows, flat: FlatRows, rest: Nodes, values: Numbers, truth: Flags) -> None:
    """Compute the rows that are left one by one."""
    known = np.setdiff1d(flat.parts(rest)[0], rest)
    found = dict(zip(known.tolist(), values[known].tolist(), strict=True))
    found |= {row: bool(found[row]) for row in known[truth[known]].tolist()}
    for start in range(0, len(rest), EVERY):
        check("comparing loops with their rows")
        block = rest[start : start + EVERY]
        values[block] = [float(value) for value in evaluate(rows, block.tolist(), found)]


SCALES = 1.0, 0.25, 1 / 32, 2.0**-10  # of the points that are tried
CLOSE = 1e-9  # of the largest value: sums are added up in another order
DIGITS = 100  # in which sums of products of some floats are exact
ROUNDING = 2.0**-50  # of a number of the point


def agree(program: RolledProgram, rows: Rows, arrays: Arrays) -> bool:
    """Return whether a rolled program has the values of its rows at a random point, the same one every time.

    A wrong table shows at any point, so one is enough; of several points that are tried, it is the first one with
    finite values that the last digits of the point do not decide on, or the last. Where two sums that are equal are
    compared, the order of their terms decides: programs that agree in many digits do.
    """
    generator = np.random.default_rng(0)
    for scale in SCALES:
        point = [scale * generator.uniform(0.25, 1.25, nodes.shape) for _, nodes in arrays.inputs]
        expected = _straight(rows, arrays, point)
        if not all(np.isfinite(array).all() for array in expected) and scale != SCALES[-1]:
            continue
        with np.errstate(all="ignore"):
            found = evaluate_rolled(program, point)
        if _all_close(found, expected):
            return True
        if _all_close(_straight(rows, arrays, [array * (1 + ROUNDING) for array in point]), expected):
            break
    return _agree_in_digits(program, rows, arrays, point)


def _agree_in_digits(program: RolledProgram, rows: Rows, arrays: Arrays, point: Sequence[Numbers]) -> bool:
    """Return whether the two have the same values in many digits; False where they are too large for that."""
    numbers = [number for array in point for number in array.ravel().tolist()]
    inputs = [row for _, nodes in arrays.inputs for row in nodes.ravel().tolist()]
    try:
        flat = unroll(program)
        found = _in_digits(flat, [output.rows for output in flat.outputs], dict(enumerate(numbers)))
        wanted = [nodes.ravel().tolist() for nodes, _ in arrays.outputs]
        return _all_close(found, _in_digits(rows, wanted, dict(zip(inputs, numbers, strict=True))))
    except LimitError:
        return False


def _in_digits(rows: Rows, wanted: Sequence[Sequence[int]], values: dict[int, float]) -> list[Numbers]:
    evaluate(rows, [row for array in wanted for row in array], values, "reference", DIGITS)
    return [np.array([float(values[row]) for row in array]) for array in wanted]


def _all_close(found: Sequence[Numbers], expected: Sequence[Numbers]) -> bool:
    return all(_close(np.ravel(a), np.ravel(b)) for a, b in zip(found, expected, strict=True))


def _straight(rows: Rows, arrays: Arrays, point: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    inputs = np.concatenate([np.empty(0, dtype=np.int64), *(nodes.ravel() for _, nodes in arrays.inputs)])
    numbers = np.concatenate([np.empty(0), *(array.ravel() for array in point)])
    wanted = [nodes.ravel() for nodes, _ in arrays.outputs]
    flat = rows.flat if isinstance(rows, PlainRows) else flattened(rows)
    values = straight_values(rows, flat, inputs, numbers, np.concatenate([np.empty(0, dtype=np.int64), *wanted]))
    return np.split(values, np.cumsum([len(nodes) for nodes in wanted])[:-1])


def _close(found: NDArray[np.float64], expected: NDArray[np.float64]) -> bool:
    scale = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
    return bool(np.allclose(found, expected, rtol=CLOSE, atol=CLOSE * scale, equal_nan=True))
