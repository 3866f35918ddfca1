"""Run expressions of one or two NumPy operations by NumPy's own loops, which start sooner.

Only operations that have the bits of a kernel: sums and products of two, quotients, squares, roots; no sums of
products, which a kernel fuses.
"""

from __future__ import annotations

import sympy as sp

from codegen.ir.program import Program
from codegen.ir.region import RolledProgram

MOST = 2  # passes over arrays, which cost as much as one pass of a kernel
_SYMBOLS = (sp.Symbol, sp.Dummy)
_EXPONENTS = (2, -1, sp.Rational(1, 2))


def are_numpys(program: Program | RolledProgram) -> bool:
    """Whether each result is of a few of NumPy's operations, and of all arguments, so that it has their shape.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> [are_numpys(program_from_sympy([x, y], [e])) for e in (x * y, x / y - 1, x**2 + y, x + 1, sp.sin(x) * y)]
    [True, True, False, False, False]
    """
    if isinstance(program, RolledProgram) or len(program) > 8:
        return False
    passes, used, products = 0, list[frozenset[int]](), set[int]()
    for row, (head, operands) in enumerate(zip(program.heads, program.operands, strict=True)):
        if not operands:
            if head not in _SYMBOLS and not issubclass(head, (sp.Integer, type(sp.S.Half))):
                return False
            used.append(frozenset([row] if head in _SYMBOLS else []))
            continue
        exponent = program.atoms.get(operands[-1]) if head is sp.Pow else None
        if len(operands) != 2 or not (head in (sp.Add, sp.Mul) or exponent in _EXPONENTS):
            return False
        if head is sp.Add and products.intersection(operands):
            return False
        used.append(used[operands[0]] | used[operands[1]])
        if head is not sp.Pow and any(program.heads[operand] is type(sp.S.Half) for operand in operands):
            return False
        negated = any(program.heads[operand] is type(sp.S.NegativeOne) for operand in operands)
        passes += not negated  # an inverse or a negative, which is part of a quotient or difference
        divided = any(program.atoms.get(power[-1]) == -1 for power in (program.operands[k] for k in operands) if power)
        products |= {row} if (head is sp.Mul and not (negated or divided)) or exponent == 2 else set()
    results = [row for output in program.outputs for row in output.rows]
    every = frozenset(row for row, head in enumerate(program.heads) if head in _SYMBOLS)
    whole = all(program.operands[row] and used[row] == every for row in results)
    return whole and len(every) == len(program.arguments) and passes <= MOST
