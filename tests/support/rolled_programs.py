"""Rolled programs for tests: some that are written down, and random ones of every form that regions can have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp
from numpy.random import Generator

from codegen.evaluation.interpret import evaluate
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram
from codegen.ir.row_table import RowTable
from codegen.ir.tables import Affine, Indexed, Table as Places, table
from codegen.ir.unroll import unroll

A, B, C, D = sp.symbols("a b c d")


def pairs(count: int = 9) -> RolledProgram:
    """Sum and list of products of all pairs."""
    i, j = np.triu_indices(count, 1)
    body = program_from_sympy([A, B], [A * B + 1, A * B])
    results = (Result(0, 1, Affine(0, 0, len(i)), "add"), Result(1, 2, Affine(0, 1, len(i)), "store"))
    region = Region(body, len(i), (Gather(0, table(i)), Gather(0, table(j))), results, origin="pairs.py:1-2")
    buffers = (Buffer("input", count), Buffer("output", 1), Buffer("output", len(i)))
    return RolledProgram((Input("x", (count,)),), (Output((), ()), Output((len(i),), ())), buffers, (region,), "pairs")


def heat(points: int = 7, steps: int = 5) -> RolledProgram:
    """Explicit time steps of the heat equation: a nest over a history."""
    copy = program_from_sympy([A], [A])
    inside = program_from_sympy([A, B, C], [B + 0.125 * (A - 2 * B + C)])
    first = Region(copy, points, (Gather(0, Affine(0, 1, points)),), (Result(0, 1, Affine(0, 1, points), "store"),))
    here = (points,)
    region = Region(
        inside, points - 2, tuple(Gather(1, Affine(k, 1, points - 2, here)) for k in range(3)),
        (Result(0, 1, Affine(points + 1, 1, points - 2, here), "store"),), origin="heat.py:3",
    )  # fmt: skip
    last = Region(
        copy, points, (Gather(1, Affine(steps * points, 1, points)),), (Result(0, 2, Affine(0, 1, points), "store"),)
    )
    buffers = (Buffer("input", points), Buffer("workspace", (steps + 1) * points), Buffer("output", points))
    outputs = (Output((points,), ()),)
    return RolledProgram((Input("u", (points,)),), outputs, buffers, (first, Nest(steps, (region,)), last), "heat")


def momentum(steps: int = 30) -> RolledProgram:
    """Gradient steps with momentum: two carries, the last value and all losses."""
    speed = 0.5 * B - C * A
    body = program_from_sympy([C, A, B], [A + speed, speed, A**2])
    ones = Affine(0, 0, 1)
    region = Region(
        body, steps, (Gather(0, Affine(0, 0, steps)),),
        (Result(0, 3, ones, "last"), Result(2, 4, Affine(0, 1, steps), "store")),
        (Carry(0, (Gather(1, ones),)), Carry(1, (Gather(2, ones),))), origin="momentum.py:7-9",
    )  # fmt: skip
    buffers = (Buffer("input", 1), Buffer("input", 1), Buffer("constant", 1, np.zeros(1)), Buffer("output", 1),
               Buffer("output", steps))  # fmt: skip
    inputs, outputs = (Input("rate", ()), Input("x", ())), (Output((), ()), Output((steps,), ()))
    return RolledProgram(inputs, outputs, buffers, (region,), "momentum")


def newton(bound: int = 50) -> RolledProgram:
    """A square root by Newton's method, which stops when it is good; with the number of repetitions, and all values."""
    new = (B + A / B) / 2
    body = program_from_sympy([A, B], [new, sp.Abs(new**2 - A) < 1e-12 * A, sp.Integer(1)])
    ones, same = Affine(0, 0, 1), Affine(0, 0, bound)
    region = Region(
        body, bound, (Gather(0, same),),
        (Result(0, 1, ones, "last"), Result(2, 2, same, "add"), Result(0, 3, Affine(0, 1, bound), "store")),
        (Carry(0, (Gather(0, ones),)),), stop=1, origin="newton.py:4",
    )  # fmt: skip
    buffers = (Buffer("input", 1), Buffer("output", 1), Buffer("output", 1), Buffer("output", bound))
    outputs = (Output((), ()), Output((), ()), Output((bound,), ()))
    return RolledProgram((Input("square", ()),), outputs, buffers, (region,), "newton")


def long_body(operations: int = 1200, count: int = 20) -> RolledProgram:
    """A body of several chunk functions, from both ends of an array."""
    random = np.random.default_rng(0)
    heads: list[Any] = [sp.Symbol, sp.Symbol]
    operands: list[tuple[int, ...]] = [(), ()]
    for row in range(2, operations):
        first, second = (int(part) for part in random.integers(max(0, row - 40), row, 2))
        heads.append((sp.Add, sp.sin, sp.Max)[row % 3])
        operands.append((first,) if row % 3 == 1 else (first, second))
    inputs, outputs = (Input("a", ()), Input("b", ())), (Output((), (operations - 1,)), Output((), (operations - 2,)))
    body = Program(heads, operands, {0: A, 1: B}, inputs, outputs)
    region = Region(
        body, count, (Gather(0, Affine(0, 1, count)), Gather(0, Affine(count - 1, -1, count))),
        (Result(0, 1, Affine(0, 1, count), "store"), Result(1, 2, Affine(0, 0, count), "add")), origin="long*/a.py:1",
    )  # fmt: skip
    buffers = (Buffer("input", count), Buffer("output", count), Buffer("output", 1))
    return RolledProgram((Input("x", (count,)),), (Output((count,), ()), Output((), ())), buffers, (region,), "long")


KNOWN = {"pairs": pairs(), "heat": heat(), "momentum": momentum(), "newton": newton(), "long": long_body()}


def arrays_for(program: RolledProgram, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Random input arrays of a program."""
    random = np.random.default_rng(seed)
    return [random.uniform(0.5, 1.5, array.shape) for array in program.inputs]


def unrolled_values(program: RolledProgram, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """The outputs by the interpreter of straight lines."""
    flat = unroll(program)
    values = dict(enumerate(np.concatenate([[0.0], *[np.ravel(array) for array in arrays]])[1:].tolist()))
    return [np.reshape(evaluate(flat, list(output.rows), values), output.shape) for output in flat.outputs]


def random_program(seed: int) -> RolledProgram:
    """Regions of every form after each other: what one leaves in a workspace, others read."""
    random = np.random.default_rng(seed)
    inputs = tuple(Input(f"x{k}", (int(random.integers(1, 9)),)) for k in range(random.integers(1, 3)))
    constant = random.choice([0.0, 1.0, -1.0, 2.5, 0.1], size=5)
    made = _Drafts(random, [array.size for array in inputs], [constant])
    steps = [made.step() for _ in range(random.integers(1, 5))]
    sizes = [int(random.integers(1, 12)) for _ in range(random.integers(1, 3))]
    steps += [made.region(target=size) for size in sizes]
    middle = [Buffer("workspace", size) for size in made.workspaces]
    buffers = (
        *(Buffer("input", array.size) for array in inputs), Buffer("constant", 5, constant), *middle,
        *(Buffer("output", size) for size in sizes),
    )  # fmt: skip
    outputs = tuple(Output((size,), ()) for size in sizes)
    return RolledProgram(inputs, outputs, buffers, tuple(steps), f"random{seed}")


class _Drafts:
    """Regions in the making, and the sizes of the buffers that they may read."""

    def __init__(self, random: Generator, inputs: list[int], constants: list[Any]) -> None:
        self.random, self.sizes = random, [*inputs, *map(len, constants)]
        self.workspaces: list[int] = []

    def step(self) -> Region | Nest:
        return self.nest() if self.random.random() < 0.3 else self.region()

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high))

    def places(self, size: int, count: int, *, distinct: bool = False) -> Places:
        """Some places of a buffer, affine or not."""
        if distinct:
            way = self.number(0, 2)
            return Indexed(self.random.permutation(size)[:count]) if way else Affine(size - count, 1, count)
        if self.random.random() < 0.5:
            return table(self.random.integers(0, size, count))
        start = self.number(0, size)
        longest = (size - 1 - start) // max(count - 1, 1)
        return Affine(start, self.number(0, longest + 1), count)

    def gather(self, count: int) -> Gather:
        buffer = self.number(0, len(self.sizes))
        return Gather(buffer, self.places(self.sizes[buffer], count))

    def region(self, target: int | None = None) -> Region:
        """A region whose results go to a new buffer; one that is a target takes any number of repetitions."""
        count = self.number(1, 40)
        gathers = tuple(self.gather(count) for _ in range(self.number(1, 4)))
        carries = tuple(
            Carry(k, tuple(self.gather(1) for _ in range(self.number(1, 4))))
            for k in range(self.number(0, 3) if self.random.random() < 0.5 else 0)
        )
        stop = 3 if self.random.random() < 0.2 else None
        body = self.body(len(gathers) + len(carries))
        buffer = len(self.sizes)
        size = target or count + self.number(0, 3)
        results: tuple[Result, ...]
        if size < count or self.random.random() < 0.5:
            results = tuple(Result(k, buffer, self.places(size, count), "add") for k in range(self.number(1, 3)))
        else:
            results = (Result(0, buffer, self.places(size, count, distinct=True), "store"),)
            if carries and len(carries[0].initial) == 1 and size > count and isinstance(results[0].table, Affine):
                results += (Result(0, buffer, Affine(0, 0, 1), "last"),)
        self.sizes.append(size)
        self.workspaces += [] if target else [size]
        return Region(body, count, gathers, results, carries, stop, "random.py:1")

    def nest(self) -> Nest:
        """Rounds over a history: each reads what the round before it left; and a sum over all rounds."""
        width, rounds = self.number(2, 9), self.number(1, 5)
        buffer = len(self.sizes)
        gathers = (Gather(buffer, Affine(0, 1, width, (width,))), self.gather(width))
        results = (Result(0, buffer, Affine(width, 1, width, (width,)), "store"),)
        initial = tuple(Gather(buffer, Affine(k, 0, 1, (width,))) for k in range(self.number(0, 2)))
        carries = (Carry(1, initial),) if initial else ()
        first = Region(self.body(2 + len(carries)), width, gathers, results, carries)
        self.sizes += [width * (rounds + 1), 3]
        inner = Nest(
            2,
            (
                Region(
                    self.body(2),
                    width,
                    gathers,
                    (
                        Result(
                            1,
                            buffer + 1,
                            self.places(
                                2,
                                width,
                            ),
                            "add",
                        ),
                    ),
                ),
            ),
        )
        self.workspaces += [width * (rounds + 1), 3]
        return Nest(rounds, (first, inner))

    def body(self, slots: int) -> Program:
        """Three outputs that stay bounded, and one that is true or false."""
        table = RowTable()
        values = [table.leaf(sp.Symbol(f"s{k}")) for k in range(slots)]
        half, minus, two, yes = map(table.leaf, (sp.Float(0.5), sp.Integer(-1), sp.Integer(2), sp.true))
        values += [half, table.leaf(sp.Integer(1))]
        forms = {
            sp.Add: lambda u, v: (u, v), sp.Mul: lambda u, v: (u, v), sp.sin: lambda u, v: (u,),
            sp.tanh: lambda u, v: (table.row(sp.Mul, (u, v)),), sp.Max: lambda u, v: (u, v),
            sp.Pow: lambda u, v: (table.row(sp.Add, (two, table.row(sp.Mul, (u, u)))), minus),
            sp.Piecewise: lambda u, v: (u, table.row(sp.Lt, (v, half)), v, yes),
        }  # fmt: skip
        for _ in range(self.number(2, 7)):
            u, v = (values[self.number(0, len(values))] for _ in range(2))
            head = list(forms)[self.number(0, len(forms))]
            values.append(table.row(head, forms[head](u, v)))
        found = [table.row(sp.tanh, (values[-k],)) for k in (1, 2, 3)]
        found.append(table.row(sp.Gt, (values[-1], half)))
        inputs = tuple(Input(f"s{k}", ()) for k in range(slots))
        return Program(table.heads, table.operands, table.atoms, inputs, tuple(Output((), (row,)) for row in found))
