"""Rolled programs for the tests of derivatives: sums, maps, chains, several of them one after the other, nests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram, Step
from codegen.ir.tables import Affine, Table, table
from symad.derivatives.loops.body_derivatives import body_program

Shapes = dict[str, tuple[int, ...]]


class Made:
    """A program in the making, whose buffers have names."""

    def __init__(self, inputs: Shapes, outputs: Shapes, workspaces: Shapes | None = None, **constants: object) -> None:
        self.inputs, self.outputs = inputs, outputs
        values = {name: np.asarray(value, dtype=float).ravel() for name, value in constants.items()}
        self.buffers = [Buffer("input", int(np.prod(shape))) for shape in inputs.values()]
        self.buffers += [Buffer("constant", len(value), value) for value in values.values()]
        self.buffers += [Buffer("workspace", int(np.prod(shape))) for shape in (workspaces or {}).values()]
        self.buffers += [Buffer("output", int(np.prod(shape))) for shape in outputs.values()]
        self.number = {name: k for k, name in enumerate([*inputs, *values, *(workspaces or {}), *outputs])}

    def at(self, name: str, places: Table | Sequence[int] | int) -> Gather:
        if isinstance(places, int):
            places = Affine(places, 0, 1)
        return Gather(self.number[name], places if isinstance(places, Affine) else _table(places))

    def to(self, output: int, name: str, places: Table | Sequence[int] | int, kind: str = "store") -> Result:
        use = self.at(name, places)
        return Result(output, use.buffer, use.table, kind)  # type: ignore[arg-type]

    def program(self, *steps: Step) -> RolledProgram:
        inputs = tuple(Input(name, shape) for name, shape in self.inputs.items())
        outputs = tuple(Output(shape, ()) for shape in self.outputs.values())
        return RolledProgram(inputs, outputs, tuple(self.buffers), steps, "case")


def _table(places: Table | Sequence[int]) -> Table:
    return table(np.asarray(places)) if isinstance(places, list | np.ndarray | range) else places  # type: ignore[return-value]


def region(
    function: Callable[..., tuple[object, ...]],
    count: int,
    gathers: Sequence[Gather],
    results: Sequence[Result],
    carries: Sequence[Carry] = (),
    stop: int | None = None,
) -> Region:
    body = body_program(function, len(gathers) + len(carries))
    return Region(body, count, tuple(gathers), tuple(results), tuple(carries), stop, "case.py:1")


def run(count: int, start: int = 0, step: int = 1, shifts: tuple[int, ...] = ()) -> Affine:
    return Affine(start, step, count, shifts)


def lennard_jones(n: int = 5) -> RolledProgram:
    made = Made({"x": (n, 2)}, {"energy": ()})
    pairs = np.array(list(combinations(range(n), 2)))

    def pair(a: object, b: object, c: object, d: object) -> tuple[object]:
        s = 1 / ((a - c) ** 2 + (b - d) ** 2) ** 3
        return (4 * s * (s - 1),)

    gathers = [made.at("x", 2 * pairs[:, k // 2] + k % 2) for k in range(4)]
    return made.program(region(pair, len(pairs), gathers, [made.to(0, "energy", run(len(pairs), 0, 0), "add")]))


def rosenbrock(n: int = 6) -> RolledProgram:
    made = Made({"x": (n,)}, {"f": ()})
    gathers = [made.at("x", run(n - 1)), made.at("x", run(n - 1, 1))]
    return made.program(
        region(lambda u, v: (100 * (v - u * u) ** 2 + (1 - u) ** 2,), n - 1, gathers,
               [made.to(0, "f", run(n - 1, 0, 0), "add")])
    )  # fmt: skip


def logistic(rows: int = 7, columns: int = 3) -> RolledProgram:
    random = np.random.default_rng(0)
    data = random.integers(-2, 3, (rows, columns)).astype(float)
    labels = np.sign(random.normal(size=rows))
    made = Made({"w": (columns,), "bias": ()}, {"loss": ()}, data=data, labels=labels)

    def term(
        a: object, b: object, c: object, bias: object, p: object, q: object, r: object, y: object
    ) -> tuple[object]:
        return (np.log1p(np.exp(-y * (a * p + b * q + c * r + bias))),)

    gathers = [made.at("w", run(rows, k, 0)) for k in range(columns)] + [made.at("bias", run(rows, 0, 0))]
    gathers += [made.at("data", run(rows, k, columns)) for k in range(columns)] + [made.at("labels", run(rows))]
    return made.program(region(term, rows, gathers, [made.to(0, "loss", run(rows, 0, 0), "add")]))


def momentum(steps: int = 9) -> RolledProgram:
    """Gradient descent with momentum on a small function of two numbers, with a schedule of step lengths."""
    made = Made(
        {"start": (2,), "rate": ()}, {"end": ()}, {"last": (2,)}, schedule=0.1 + 0.01 * np.arange(steps), zero=[0.0]
    )

    def step(rate: object, scale: object, x: object, y: object, u: object, v: object) -> tuple[object, ...]:
        u = 0.9 * u - rate * scale * (4 * x**3 + y)
        v = 0.9 * v - rate * scale * (x + np.sin(y))
        return x + u, y + v, u, v

    gathers = [made.at("rate", run(steps, 0, 0)), made.at("schedule", run(steps))]
    initial = [made.at("start", 0), made.at("start", 1), made.at("zero", 0), made.at("zero", 0)]
    carries = [Carry(k, (use,)) for k, use in enumerate(initial)]
    lasts = [made.to(k, "last", k, "last") for k in range(2)]
    return made.program(
        region(step, steps, gathers, lasts, carries),
        region(lambda x, y: (x * x + x * y,), 1, [made.at("last", 0), made.at("last", 1)], [made.to(0, "end", 0)]),
    )


def recurrence(count: int = 7, lags: tuple[int, ...] = (2, 3)) -> RolledProgram:
    """A sequence of its own past, all of which is summed: x_k = sin(a_k x_{k-2} + b x_{k-3})."""
    most = max(lags)
    made = Made({"first": (most,), "a": (count,), "b": ()}, {"total": (), "all": (count,), "end": ()}, {"sum": ()})

    def step(a: object, b: object, *past: object) -> tuple[object, ...]:
        value = a
        for k, before in enumerate(past):
            value = value * before + b * (k + 1)
        return np.sin(value), value * value

    gathers = [made.at("a", run(count)), made.at("b", run(count, 0, 0))]
    carries = [Carry(0, tuple(made.at("first", most - lag + k) for k in range(lag))) for lag in lags]
    results = [made.to(1, "sum", run(count, 0, 0), "add"), made.to(0, "all", run(count))]
    results += [made.to(0, "end", 0, "last")] if 1 in lags else []
    return made.program(
        region(step, count, gathers, results, carries),
        region(lambda s: (np.log(1 + s),), 1, [made.at("sum", 0)], [made.to(0, "total", 0)]),
    )


def log_sum_exp(n: int = 6) -> RolledProgram:
    made = Made({"x": (n,)}, {"f": ()}, {"e": (n,), "sum": ()})
    return made.program(
        region(lambda u: (np.exp(0.1 * u * u),), n, [made.at("x", run(n))], [made.to(0, "e", run(n))]),
        region(lambda e: (e,), n, [made.at("e", run(n))], [made.to(0, "sum", run(n, 0, 0), "add")]),
        region(lambda s, x: (np.log(s) * x,), 1, [made.at("sum", 0), made.at("x", 1)], [made.to(0, "f", 0)]),
    )


def perceptron(inputs: int = 3, width: int = 4) -> RolledProgram:
    """Two layers: a map whose inner sums are written out, a sum over what it gives, straight lines at the end."""
    made = Made(
        {"w": (width, inputs), "v": (width,), "b": ()}, {"loss": (), "hidden": (width,)}, {"h": (width,), "s": ()},
        x=[0.3, -1.2, 0.7],
    )  # fmt: skip
    gathers = [made.at("w", run(width, k, inputs)) for k in range(inputs)]
    gathers += [made.at("x", run(width, k, 0)) for k in range(inputs)]
    return made.program(
        region(lambda p, q, r, x, y, z: (np.tanh(p * x + q * y + r * z),), width, gathers,
               [made.to(0, "h", run(width))]),
        region(lambda h, v: (h * v, 2 * h), width, [made.at("h", run(width)), made.at("v", run(width))],
               [made.to(0, "s", run(width, 0, 0), "add"), made.to(1, "hidden", run(width))]),
        region(lambda s, b: ((s + b - 1) ** 2,), 1, [made.at("s", 0), made.at("b", 0)], [made.to(0, "loss", 0)]),
    )  # fmt: skip


def scattered(n: int = 5) -> RolledProgram:
    """Forces: pairs add to both of their particles, and what was added is read again, as is an output."""
    made = Made({"x": (n,)}, {"f": (), "force": (n,)}, {"g": (n,)})
    pairs = np.array(list(combinations(range(n), 2)))
    ends = [made.at("x", pairs[:, k]) for k in range(2)]
    return made.program(
        region(lambda a, b: (np.sin(a - b), -np.sin(a - b) * a), len(pairs), ends,
               [made.to(k, "g", pairs[:, k], "add") for k in range(2)]),
        region(lambda g, x: (g * g * x, 3.0 * g), n, [made.at("g", run(n)), made.at("x", run(n, n - 1, -1))],
               [made.to(0, "force", run(n))]),
        region(lambda u, v: (u * v,), n, [made.at("force", run(n)), made.at("g", run(n))],
               [made.to(0, "f", run(n, 0, 0), "add")]),
    )  # fmt: skip


def piecewise(n: int = 6) -> RolledProgram:
    """Conditions, constants as outputs, slots as outputs, an output that depends on nothing active."""
    made = Made({"x": (n,), "c": ()}, {"f": (), "copy": (n,), "two": (n,)}, {"y": (n,)}, d=np.arange(n) - 2.5)
    return made.program(
        region(lambda x, c, d: (np.where(x > d, x * c, d), x, 2.0, np.floor(x)), n,
               [made.at("x", run(n)), made.at("c", run(n, 0, 0)), made.at("d", run(n))],
               [made.to(0, "y", run(n)), made.to(1, "copy", run(n)), made.to(2, "two", run(n))]),
        region(lambda y, t: (y * y * t,), n, [made.at("y", run(n)), made.at("two", run(n))],
               [made.to(0, "f", run(n, 0, 0), "add")]),
    )  # fmt: skip


def nested(rounds: int = 4, count: int = 3) -> RolledProgram:
    """A scan of a map: u <- u + a * sin(u) for all places, round by round, in a history; then a sum of the end."""
    made = Made({"u": (count,), "a": (rounds,)}, {"f": ()}, {"history": (rounds + 1, count), "sum": (rounds,)})
    size = rounds * count
    back = run(count, count - 1, -1, (count,))
    return made.program(
        region(lambda u: (u,), count, [made.at("u", run(count))], [made.to(0, "history", run(count))]),
        Nest(rounds, (
            region(lambda u, v, a: (u + a * np.sin(u * v), u * v), count,
                   [made.at("history", run(count, 0, 1, (count,))), made.at("history", back),
                    made.at("a", run(count, 0, 0, (1,)))],
                   [made.to(0, "history", run(count, count, 1, (count,))),
                    made.to(1, "sum", run(count, 0, 0, (1,)), "add")]),
        )),
        region(lambda u: (u * u,), count, [made.at("history", run(count, size))],
               [made.to(0, "f", run(count, 0, 0), "add")]),
        region(lambda s: (s,), rounds, [made.at("sum", run(rounds))], [made.to(0, "f", run(rounds, 0, 0), "add")]),
    )  # fmt: skip


def scan_of_scan(rounds: int = 3, count: int = 4) -> RolledProgram:
    """A chain inside a nest: each round begins where the one before ended."""
    made = Made({"start": (), "a": (rounds, count)}, {"f": ()}, {"ends": (rounds + 1,), "sum": ()})
    step = region(
        lambda a, x: (x + a * np.cos(x), x * x), count, [made.at("a", run(count, 0, 1, (count,)))],
        [made.to(0, "ends", Affine(1, 0, 1, (1,)), "last"), made.to(1, "sum", Affine(0, 0, count), "add")],
        [Carry(0, (made.at("ends", Affine(0, 0, 1, (1,))),))],
    )  # fmt: skip
    return made.program(
        region(lambda x: (x,), 1, [made.at("start", 0)], [made.to(0, "ends", 0)]),
        Nest(rounds, (step,)),
        region(lambda s, e: (s * e,), 1, [made.at("sum", 0), made.at("ends", rounds)], [made.to(0, "f", 0)]),
    )


def two_levels(rounds: int = 2, inner: int = 3, count: int = 2) -> RolledProgram:
    """A nest in a nest."""
    size = rounds * inner * count
    made = Made({"x": (size,), "w": (rounds,)}, {"f": ()}, {"y": (size,)})
    at = run(count, 0, 1, (inner * count, count))
    square = region(lambda x, w: (x * x * w,), count,
                    [made.at("x", at), made.at("w", run(count, 0, 0, (1,)))], [made.to(0, "y", at)])  # fmt: skip
    total = region(lambda y: (y * y,), count, [made.at("y", at)], [made.to(0, "f", run(count, 0, 0), "add")])
    return made.program(Nest(rounds, (Nest(inner, (square, total)),)))


def chain_in_two_nests(outer: int = 2, inner: int = 3, count: int = 2) -> RolledProgram:
    """A chain of lag 2 in a nest in a nest; each begins with the ends of the two before."""
    rounds = outer * inner
    made = Made({"start": (2,), "a": (rounds, count)}, {"f": ()}, {"ends": (rounds + 2,), "sum": ()})
    step = region(
        lambda a, x, y: (a * np.cos(x) + y * x, x * y), count, [made.at("a", run(count, 0, 1, (inner * count, count)))],
        [made.to(0, "ends", Affine(2, 0, 1, (inner, 1)), "last"), made.to(1, "sum", Affine(0, 0, count), "add")],
        [Carry(0, tuple(made.at("ends", Affine(k, 0, 1, (inner, 1))) for k in range(2))),
         Carry(0, (made.at("ends", Affine(1, 0, 1, (inner, 1))),))],
    )  # fmt: skip
    return made.program(
        region(lambda x: (x,), 2, [made.at("start", run(2))], [made.to(0, "ends", run(2))]),
        Nest(outer, (Nest(inner, (step,)),)),
        region(lambda s, e: (s * e,), 1, [made.at("sum", 0), made.at("ends", rounds + 1)], [made.to(0, "f", 0)]),
    )


def stopping(count: int = 8) -> RolledProgram:
    """Newton's iteration for a square root, until it moves no more."""
    made = Made({"a": ()}, {"root": ()})
    step = region(lambda a, x: (0.5 * (x + a / x), abs(x * x - a) < 1e-9), count, [made.at("a", run(count, 0, 0))],
                  [made.to(0, "root", 0, "last")], [Carry(0, (made.at("a", 0),))], stop=1)  # fmt: skip
    return made.program(step)


CASES = {
    "lennard_jones": lennard_jones,
    "rosenbrock": rosenbrock,
    "logistic": logistic,
    "momentum": momentum,
    "lag_1_2_3": lambda: recurrence(7, (1, 2, 3)),
    "lag_2": lambda: recurrence(5, (2,)),
    "lag_3_short": lambda: recurrence(2, (3,)),
    "lag_1_1": lambda: recurrence(4, (1, 1)),
    "log_sum_exp": log_sum_exp,
    "perceptron": perceptron,
    "scattered": scattered,
    "piecewise": piecewise,
    "nested": nested,
    "scan_of_scan": scan_of_scan,
    "two_levels": two_levels,
    "chain_in_two_nests": chain_in_two_nests,
    "longer_chain_in_two_nests": lambda: chain_in_two_nests(3, 2, 19),
}


def memory(program: RolledProgram) -> int:
    """Return the bytes of the workspace of a program: of all its buffers but constants, inputs and outputs.

    >>> memory(RolledProgram((), (), (Buffer("workspace", 10),), ()))
    80
    """
    return 8 * sum(buffer.size for buffer in program.buffers if buffer.kind == "workspace")
