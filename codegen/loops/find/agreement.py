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
from codegen.loops.loop import Nodes, joined
from codegen.loops.place.buffers import Arrays

Numbers = NDArray[np.float64]


def straight_values(rows: Rows, flat: FlatRows, inputs: Nodes, numbers: Numbers, targets: Nodes) -> Numbers:
    """Return the values of target rows, where the inputs have some numbers.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.loops.find.flat_rows import flattened
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [2 * x + 1])
    >>> straight_values(program, flattened(program), np.array([0]), np.array([3.0]), np.array([len(program) - 1]))
    array([7.])
    """
    values, known, is_wanted = np.zeros(len(flat)), np.zeros(len(flat), dtype=bool), np.zeros(len(flat), dtype=bool)
    values[inputs], known[inputs], is_wanted[targets] = numbers, True, True
    todo = needed(flat, is_wanted, known) & ~known
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
                _compute_wave(flat, wave[kinds == kind], values, truth)
    _compute_rest(rows, flat, rest, values, truth)
    return values[targets]


def _compute_wave(flat: FlatRows, rows: Nodes, values: Numbers, truth: Flags) -> None:
    """Compute rows of one head and equally many operands."""
    operands = flat.parts(rows)[0].reshape(len(rows), -1)
    columns = []
    for nodes in operands.T:
        column = values[nodes[0]] if (nodes == nodes[0]).all() else values[nodes]
        columns.append(np.not_equal(column, 0.0) if truth[nodes[0]] else column)
    values[rows] = FUNCTIONS[flat.heads[flat.codes[rows[0]]]](*columns)


def _compute_rest(rows: Rows, flat: FlatRows, rest: Nodes, values: Numbers, truth: Flags) -> None:
    """Compute the remaining rows one by one."""
    known = np.setdiff1d(flat.parts(rest)[0], rest)
    value_of = dict(zip(known.tolist(), values[known].tolist(), strict=True))
    value_of |= {row: bool(value_of[row]) for row in known[truth[known]].tolist()}
    for start in range(0, len(rest), EVERY):
        check("comparing loops with their rows")
        block = rest[start : start + EVERY]
        values[block] = [float(value) for value in evaluate(rows, block.tolist(), value_of)]


SCALES = 1.0, 0.25, 1 / 32, 2.0**-10  # of the points that are tried
CLOSE = 1e-9  # of the largest value: sums are added up in another order
DIGITS = 100  # sums of products of some floats are exact in them
ROUNDING = 2.0**-50  # of a number of the point


def agree(program: RolledProgram, rows: Rows, arrays: Arrays) -> bool:
    """Return whether a rolled program has the values of its rows at a random point, the same one every time.

    A wrong table shows at any point, so one is enough: the first of several with finite values that do not depend on
    the last digits of the point, or the last one. Where two equal sums are compared, the order of their terms decides
    the result: then programs have to agree in many digits.
    """
    generator = np.random.default_rng(0)
    for scale in SCALES:
        point = [scale * generator.uniform(0.25, 1.25, nodes.shape) for _, nodes in arrays.inputs]
        expected = _straight(rows, arrays, point)
        if not all(np.isfinite(array).all() for array in expected) and scale != SCALES[-1]:
            continue
        with np.errstate(all="ignore"):
            values = evaluate_rolled(program, point)
        if _all_close(values, expected):
            return True
        if _all_close(_straight(rows, arrays, [array * (1 + ROUNDING) for array in point]), expected):
            break
    return _agree_in_digits(program, rows, arrays, point)


def _agree_in_digits(program: RolledProgram, rows: Rows, arrays: Arrays, point: Sequence[Numbers]) -> bool:
    """Return whether both have the same values in many digits; False where they are too large for that."""
    numbers = [number for array in point for number in array.ravel().tolist()]
    inputs = [row for _, nodes in arrays.inputs for row in nodes.ravel().tolist()]
    try:
        flat = unroll(program)
        values = _in_digits(flat, [output.rows for output in flat.outputs], dict(enumerate(numbers)))
        targets = [nodes.ravel().tolist() for nodes, _ in arrays.outputs]
        return _all_close(values, _in_digits(rows, targets, dict(zip(inputs, numbers, strict=True))))
    except LimitError:
        return False


def _in_digits(rows: Rows, targets: Sequence[Sequence[int]], values: dict[int, float]) -> list[Numbers]:
    evaluate(rows, [row for array in targets for row in array], values, "reference", DIGITS)
    return [np.array([float(values[row]) for row in array]) for array in targets]


def _all_close(values: Sequence[Numbers], expected: Sequence[Numbers]) -> bool:
    return all(_close(np.ravel(a), np.ravel(b)) for a, b in zip(values, expected, strict=True))


def _straight(rows: Rows, arrays: Arrays, point: list[Numbers]) -> list[Numbers]:
    inputs = joined(nodes for _, nodes in arrays.inputs)
    numbers = np.concatenate([np.empty(0), *(array.ravel() for array in point)])
    targets = [nodes.ravel() for nodes, _ in arrays.outputs]
    flat = rows.flat if isinstance(rows, PlainRows) else flattened(rows)
    values = straight_values(rows, flat, inputs, numbers, joined(targets))
    return np.split(values, np.cumsum([len(nodes) for nodes in targets])[:-1])


def _close(values: Numbers, expected: Numbers) -> bool:
    scale = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
    return bool(np.allclose(values, expected, rtol=CLOSE, atol=CLOSE * scale, equal_nan=True))
