"""`lambdify` with derivatives: value, Jacobian and Hessian of SymPy expressions from one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

import codegen
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.sparsity import SparsityPattern
from codegen.lambdified.docstrings import shown
from codegen.lambdified.function import Lambdified
from codegen.lambdified.lambdify import by_others, read
from codegen.lambdified.structures import MATRIX, Results, Sparse
from codegen.records import dataclass
from symad.compiling.native import compile
from symad.errors import ArgumentError
from symad.tracing.from_sympy import from_program
from symad.transforms.first_order import hessian as hessian_of, jacobian as jacobian_of


def lambdify(
    args: Any,
    expressions: Any,
    modules: Any = None,
    *,
    jacobian: bool = False,
    hessian: bool = False,
    sparse: bool = False,
    **options: Any,
) -> Any:
    """Return a function of SymPy expressions that gives values and derivatives, which share what they have in common.

    Without derivatives it is `codegen.lambdify`, with all that it takes. With `jacobian` or `hessian` the result is a
    tuple: the value, with the structure of the expressions; a matrix with a row for each number of the value and a
    column for each number of the arguments, in their order; the Hessian in all of them, of a single expression.
    `sparse=True` gives matrices of `scipy.sparse` with the exact pattern. Expressions may be the pair (replacements,
    reduced) of `sympy.cse`, and SymEngine's. ArgumentError for the Hessian of several expressions, or for options of
    SymPy's printers with derivatives.

    >>> import sympy as sp
    >>> x, y, z = sp.symbols("x y z")
    >>> f = lambdify([x, (y, z)], x * sp.exp(y) + z**2, jacobian=True, hessian=True)
    >>> value, slope, bend = f(2.0, np.array([0.0, 3.0]))
    >>> value, slope.tolist(), bend.tolist()
    (11.0, [[1.0, 2.0, 6.0]], [[0.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
    """
    if not (jacobian or hessian):
        if sparse:
            raise ArgumentError("sparse=True without derivatives", do="it is for jacobian= and hessian=")
        return codegen.lambdify(args, expressions, modules, **options)
    if modules not in (None, "native", "numpy", "scipy"):
        raise ArgumentError(f"modules={modules!r} with derivatives", why="they are machine code", do="leave one out")
    expressions = by_others(expressions)
    taken, results, replacements = read(by_others(args), expressions)
    flat = results.flat()
    if hessian and len(flat) != 1:
        raise ArgumentError(f"the Hessian of {len(flat)} expressions", do="weight them with symbols, and add them up")
    program = program_from_sympy(taken.inputs, [flat], name="lambdified", replacements=replacements)
    function = _Derivatives(from_program(program), [array.shape for array in program.arguments], results,
                         (jacobian, hessian, sparse))  # fmt: skip
    kernel = compile(function, *[np.ones(shape) for shape in function.shapes], **options)
    text = shown(expressions, 1000)
    told = f"{text}, {' and '.join(function.names)}", f"Value and derivatives of:\n\n{text}"
    return Lambdified(kernel, taken, function.described(), told, None)


@dataclass(eq=False)
class _Derivatives:
    """What is compiled: the numbers of the value, its matrices, then derivatives in all numbers of the arguments."""

    function: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    results: Results
    asked: tuple[bool, bool, bool]

    def __post_init__(self) -> None:
        self.names = [name for name, is_asked in zip(("jacobian", "hessian"), self.asked, strict=False) if is_asked]
        self.patterns: dict[str, SparsityPattern] = {}

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        point = np.concatenate([np.ravel(argument) for argument in arguments])
        sparse = self.asked[2]
        results = self._values(self._flat(point))
        for name in self.names:
            transform: Any = (
                jacobian_of(self._flat, sparse=sparse)
                if name == "jacobian"
                else hessian_of(lambda point: self._flat(point)[0], sparse="full" if sparse else False)
            )
            matrix = transform(point)
            if sparse:
                self.patterns[name] = matrix.pattern
            results.append(matrix.data if sparse else matrix)
        return tuple(results)

    def described(self) -> Results:
        """Return how results lie in the outputs, after a call."""
        pairs = [self.patterns.get(name) for name in self.names]
        shape = [
            MATRIX if pattern is None else Sparse(tuple(pattern.rows), tuple(pattern.columns), pattern.shape)
            for pattern in pairs
        ]
        more: list[Any] = [[None]] * len(shape)
        return Results((self.results.shape, *shape), self.results.scalars, [*self.results.matrices, *more])

    def _flat(self, point: Any) -> Any:
        ends = accumulate((int(np.prod(shape)) for shape in self.shapes), initial=0)
        parts = [
            point[first:last].reshape(shape) if shape else point[first]
            for shape, (first, last) in zip(self.shapes, pairwise(ends), strict=True)
        ]
        return self.function(*parts)

    def _values(self, flat: Any) -> list[Any]:
        """Return all scalars as one array, then each matrix."""
        count = len(self.results.scalars)
        parts = [flat[:count]] if count else []
        for matrix in self.results.matrices:
            shape = tuple(int(size) for size in matrix.shape)
            last = count + int(np.prod(shape))
            parts.append(flat[count:last].reshape(shape))
            count = last
        return parts
