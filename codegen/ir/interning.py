"""Make equal bodies of regions one object, so that passes handle each body once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from codegen.ir.program import Program, atom_key
from codegen.ir.readdress import each_region
from codegen.ir.region import Region, Step


def interned(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps with one object for all equal bodies: row by row, to the bits of their constants.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> bodies = [program_from_sympy([x], [x + value]) for value in (2, 2, 2.0)]
    >>> first, second, third = interned([Region(body, 1, (), ()) for body in bodies])
    >>> second.body is first.body, third.body is first.body
    (True, False)
    """
    first: dict[Hashable, Program] = {}
    shared: dict[int, tuple[Program, Program]] = {}  # by the id of a body, which is kept

    def change(region: Region) -> Region:
        body = region.body
        if id(body) not in shared:
            atoms = tuple((row, atom_key(atom)) for row, atom in body.atoms.items())
            key = tuple(map(id, body.heads)), tuple(body.operands), atoms, body.inputs, body.outputs, body.name
            shared[id(body)] = body, first.setdefault(key, body)
        same = shared[id(body)][1]
        return region if same is body else replace(region, body=same)

    return each_region(steps, change)
