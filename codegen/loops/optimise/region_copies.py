"""Copies: regions whose repetitions only bring numbers from some places to others."""

from __future__ import annotations

import sympy as sp

from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Gather, Kind, Region, Result
from codegen.ir.tables import Table


def identities(count: int) -> Program:
    """Return the body that gives back its slots."""
    symbols = [sp.Symbol(f"s{k}", real=True) for k in range(count)]
    inputs = tuple(Input(symbol.name, ()) for symbol in symbols)
    outputs = tuple(Output((), (k,)) for k in range(count))
    return Program([sp.Symbol] * count, [()] * count, dict(enumerate(symbols)), inputs, outputs, "copy")


IDENTITY = identities(1)


def copy(source: Gather, buffer: int, places: Table, kind: Kind = "store", origin: str = "copies") -> Region:
    """Return the region that stores what it gathers at places of a buffer, or adds it to what is there."""
    return Region(IDENTITY, source.table.count, (source,), (Result(0, buffer, places, kind),), origin=origin)
