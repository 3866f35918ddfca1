"""`python -m benchmarks.price [--fit]`: what kernels cost, as predicted by `codegen.pricing.price` and as measured.

Every row is built in straight lines, as a sweep and with loops, where it can be; nanoseconds of a call are the best of
several bursts, seconds to build are processor time. `--fit` fits the table of prices to what was measured and prints
it. What was measured, and how much of each entry of the table the kernels have, is kept by machine as `price.json`;
`--kept` measures nothing and goes by that.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import spearmanr

import symad as sa
from benchmarks import machine
from benchmarks.problems import Problem, make_network, make_problems
from benchmarks.structure.cases import Case, make_cases
from benchmarks.structure.ours import arguments_of, derivative_of
from benchmarks.structure.problems import lennard_jones
from benchmarks.tables import number, table
from benchmarks.timing import burst, calls_per_burst, no_garbage_collection
from codegen import Kernel
from codegen.heads import exp2, expm1, log1p, log2, log10
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.lowering.halves import columns_at_once
from codegen.pricing.price import Work, rolled_work, straight_work, sweep_work, unrolled_work
from codegen.pricing.price_table import CALLS, NANOSECONDS, SECONDS

Function = Callable[..., Any]
Amounts = dict[str, float]
BURST, BURSTS = 3e-3, 15
IDLE = {False: 50.0, True: 145.0}  # nanoseconds of a call that computes nothing, and of one with a buffer
FASTER = 1.5  # times that straight lines have to be faster than loops
LONGEST = 20.0  # seconds that a build may take
LARGE = ("lj50-hessian", "lj200-gradient", "rosenbrock5-hessian")  # they take longer in straight lines
OWN = 3.0  # the weight of a kernel that has little but one function: it says what that costs
CAUTION = 0.3  # how strongly an entry keeps its price, against one kernel that is off by as much


@dataclass(frozen=True)
class Way:
    """How a function is built, and for which arguments."""

    function: Function
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def build(self) -> Kernel:
        """Build the kernel, anew every time."""
        return sa.compile(self.function, *self.arguments, cache=False, max_seconds=LONGEST, **self.options)

    def traced(self) -> int:
        """Return how many operations were traced for the loops."""
        rolled = sa.plan(self.function, *self.arguments, **self.options).candidate.rolled
        assert rolled is not None
        return rolled.primal.operations


@dataclass(frozen=True)
class Row:
    """The ways in which a function is compiled."""

    name: str
    ways: dict[str, Way]


@dataclass
class Found:
    """One kernel: what was measured, what it has of each entry, and of which row it is a candidate.

    `idle` are the nanoseconds of a call that computes next to nothing; they are in those of the kernel.
    """

    row: str
    way: str
    nanoseconds: float
    idle: float
    seconds: float
    call: Amounts
    build: Amounts
    unrolled: Amounts = field(default_factory=dict)  # what the straight lines of loops have, before they are there

    def predicted(self) -> tuple[float, float]:
        """Nanoseconds of a call from Python and seconds to build, by the table."""
        return self.idle + dot(self.call, NANOSECONDS), dot(self.build, SECONDS)


def dot(amounts: Amounts, prices: dict[str, float]) -> float:
    """Return the sum of amounts times prices."""
    return sum(prices[name] * amount for name, amount in amounts.items())


def ways_of(f: Function, *arguments: Any, sweep: bool = False, loops: Function | None = None) -> dict[str, Way]:
    """Return how a function is built: in straight lines, as a sweep, with loops (perhaps of another form of it)."""
    given = {
        "straight": {"roll": "never", "strategy": "straight"},
        "sweep": {"strategy": "sweep"},
        "loops": {"roll": "always"},
    }
    functions = {"straight": f, "sweep": f, "loops": loops or f}
    return {way: Way(functions[way], arguments, options) for way, options in given.items() if sweep or way != "sweep"}


def make_rows() -> dict[str, Row]:
    """Return all rows by name."""
    rows = [*_structure(make_cases().values()), *_problems(make_problems().values()), *_functions(), *_more()]
    return {row.name: row for row in rows}


def _structure(cases: Iterable[Case]) -> Iterable[Row]:
    for case in cases:
        if case.kind in case.family.huge or case.name in LARGE:
            continue
        arguments = arguments_of(case, case.point)
        straight, loops = derivative_of(case, "coo"), derivative_of(case, "regions")
        ways = ways_of(straight, *arguments, loops=loops)
        yield Row(case.name, ways)
        if case.kind in ("hessian", "jacobian"):
            by_rows = {"loops": ways_of(straight, *arguments)["loops"]}
            yield Row(f"{case.name}, by rows", by_rows)


def _problems(problems: Iterable[Problem]) -> Iterable[Row]:
    for problem in problems:
        if problem.kind != "hessian" or problem.point.size > 1000:
            continue
        f, x = problem.function, problem.point
        yield Row(f"{problem.name}, lower", ways_of(sa.hessian(f, sparse="lower"), x))
        if not problem.sparse or x.size <= 100:
            yield Row(f"{problem.name}, dense", ways_of(sa.hessian(f), x, sweep=True))


def _functions() -> Iterable[Row]:
    """Each function of the table 200 times, so that its price is seen."""
    x, heads = np.linspace(0.3, 1.4, 200), (exp2, log2, log10, expm1, log1p)
    functions: dict[str, Function] = {
        name: getattr(np, name) for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "cbrt")
    } | {head.__name__: getattr(np, head.__name__) for head in heads}
    functions |= {"atan": np.arctan, "asin": np.arcsin, "pow": lambda u: u**1.7, "quotient": lambda u: 1.5 / u}
    functions["coth"] = lambda u: 1 / np.tanh(u)
    for name, f in functions.items():
        yield Row(f"function {name}", ways_of(f, x))
        yield Row(f"sum of {name}", ways_of(lambda u, f=f: np.sum(f(u)), x))


def _more() -> Iterable[Row]:
    """Rows whose choice was wrong once."""
    rng = np.random.default_rng(8)
    wide, x = make_network((64, 16, 16, 1)), rng.normal(size=64)
    yield Row("mlp16, dense", ways_of(sa.hessian(wide), x, sweep=True))
    yield Row("mlp16, lower", ways_of(sa.hessian(wide, sparse="lower"), x))
    for atoms in (10, 20):
        point = make_cases()[f"lj{atoms}-hessian"].point
        yield Row(f"flat lj{atoms}, dense", ways_of(sa.hessian(lennard_jones), point, sweep=True))
        yield Row(f"flat lj{atoms}, lower", ways_of(sa.hessian(lennard_jones, sparse="lower"), point))


def measure(row: Row, say: Callable[[str], None]) -> Iterable[Found]:
    """Build every candidate of a row and take its time."""
    kernels: dict[str, tuple[Kernel, float]] = {}
    for name, way in row.ways.items():
        try:
            kernels[name] = timed(way.build)
        except sa.WorkbenchError as error:
            say(f"{row.name}: no {name}: {str(error)[:100]}")
    times = best({name: caller(kernel, row.ways[name].arguments) for name, (kernel, _) in kernels.items()})
    for name, (kernel, seconds) in kernels.items():
        found, unrolled = work_of(kernel.program, row.ways[name])
        idle = IDLE[bool(kernel.program.outputs[0].shape)]
        yield Found(row.name, name, 1e9 * times[name], idle, seconds, dict(found.call), dict(found.build), unrolled)


def timed(build: Callable[[], Kernel]) -> tuple[Kernel, float]:
    """Return a kernel and the processor seconds of its build: the best of two, if it takes less than one."""
    seconds: list[float] = []
    while not seconds or (len(seconds) == 1 and seconds[0] < 1.0):
        start = time.process_time()
        kernel = build()
        seconds.append(time.process_time() - start)
    return kernel, min(seconds)


def work_of(program: Program | RolledProgram, way: Way) -> tuple[Work, Amounts]:
    """Return what a kernel has of each entry, and what its straight lines would have."""
    if isinstance(program, RolledProgram):
        return rolled_work(program, way.traced()), dict(unrolled_work(program).call)
    return (sweep_work(program, columns_at_once(program)) if program.seeded else straight_work(program)), {}


def caller(kernel: Kernel, arguments: tuple[Any, ...]) -> Callable[[], object]:
    """Return a call with a buffer for the result, where that is an array."""
    if len(kernel.program.outputs) > 1 or not kernel.program.outputs[0].shape:
        return lambda: kernel(*arguments)
    out = np.empty(kernel.program.outputs[0].shape)
    return lambda: kernel(*arguments, out=out)


def best(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the least seconds of a call, of interleaved bursts."""
    numbers = {name: calls_per_burst(call, BURST) for name, call in calls.items()}
    least = dict.fromkeys(calls, float("inf"))
    with no_garbage_collection():
        for _ in range(BURSTS):
            for name, call in calls.items():
                least[name] = min(least[name], burst(call, numbers[name]) / numbers[name])
    return least


def fit(found: Sequence[Found], prices: dict[str, float], amounts: Callable[[Found], Amounts],
        measured: Callable[[Found], float], known: Sequence[float]) -> dict[str, float]:  # fmt: skip
    """Return prices that fit best, by the logarithms of ratios; an entry that no kernel has much of keeps its price."""
    names = [name for name in prices if any(amounts(one).get(name) for one in found)]
    matrix = np.array([[amounts(one).get(name, 0.0) for name in names] for one in found])
    weights = np.array([OWN if "function" in one.row else 1.0 for one in found])
    known_parts = np.array(known)
    times, start = np.array([measured(one) for one in found]), np.log([prices[name] for name in names])

    def residuals(logarithms: Any) -> Any:
        off = weights * np.log((known_parts + matrix @ np.exp(logarithms)) / times)
        return np.concatenate([off, CAUTION * (logarithms - start)])

    fitted = least_squares(residuals, start, loss="soft_l1", f_scale=0.1)
    return prices | {name: float(f"{value:.2g}") for name, value in zip(names, np.exp(fitted.x).tolist(), strict=True)}


def left_out(found: Sequence[Found]) -> str:
    """Return how far off prices are for rows that they were not fitted to: a fifth of the rows is left out in turn.

    Rows of single functions are never left out, for nothing else says what those cost.
    """
    names = sorted({one.row for one in found if "function" not in one.row})
    ratios: list[float] = []
    for fold in range(5):
        away = set(names[fold::5])
        rest = [one for one in found if one.row not in away]
        prices = fit(rest, NANOSECONDS, lambda one: one.call, lambda one: one.nanoseconds, [one.idle for one in rest])
        ratios += [(one.idle + dot(one.call, prices)) / one.nanoseconds for one in found if one.row in away]
    off = np.exp(np.abs(np.log(ratios)))
    return f"rows left out: typically off by a factor of {np.median(off):.2f}, at worst {off.max():.2f}"


def chosen(candidates: Sequence[tuple[str, float, float]]) -> str:
    """Return the way that is chosen among (way, nanoseconds, seconds).

    That with the least seconds to build and to call 10^6 times; but loops, unless it is 1.5 times faster to call.

    >>> chosen([("straight", 480.0, 0.4), ("loops", 590.0, 0.05)])
    'loops'
    >>> chosen([("straight", 400.0, 0.2), ("loops", 2000.0, 0.05)])
    'straight'
    """
    totals = {way: seconds + 1e-9 * CALLS * call for way, call, seconds in candidates}
    calls = {way: call for way, call, _ in candidates}
    way = min(totals, key=totals.__getitem__)
    if way == "straight" and "loops" in calls and calls["loops"] < FASTER * calls["straight"]:
        return min((other for other in totals if other != "straight"), key=totals.__getitem__)
    return way


def report(found: Sequence[Found]) -> str:
    """Return predicted against measured, and what the choices cost."""
    lines = []
    rows: dict[str, list[Found]] = {}
    for one in found:
        rows.setdefault(one.row, []).append(one)
        call, build = one.predicted()
        lines.append(
            [
                *(one.row, one.way, number(one.nanoseconds / 1e3), number(call / 1e3), f"{call / one.nanoseconds:.2f}"),
                *(number(one.seconds), number(build), f"{build / one.seconds:.2f}"),
            ]
        )
    header = ("row", "way", "us a call", "predicted", "ratio", "s to build", "predicted", "ratio")
    return "\n\n".join([
        "# Prices: predicted against measured", machine.describe(iter(())), summary(found, list(rows.values())),
        "## Choices", choices_table(rows), "## Every kernel", table(header, lines),
    ]) + "\n"  # fmt: skip


def summary(found: Sequence[Found], rows: Sequence[Sequence[Found]]) -> str:
    """Return how well the prices fit, in lines."""
    pairs = {
        "ns a call": [(one.nanoseconds, one.predicted()[0]) for one in found],
        "s to build": [(one.seconds, one.predicted()[1]) for one in found],
        "ns a call of straight lines, from loops": [
            (straight.nanoseconds, one.idle + dot(one.unrolled, NANOSECONDS))
            for row in rows for one in row if one.unrolled for straight in row if straight.way == "straight"
        ],
    }  # fmt: skip
    lines = []
    for what, numbers in pairs.items():
        right, mine = np.array(numbers).T
        off = np.exp(np.abs(np.log(mine / right)))
        lines.append(f"- {what}: {len(right)} kernels, rank correlation {spearmanr(right, mine).statistic:.3f}, "
                     f"typically off by a factor of {np.median(off):.2f}, at worst {off.max():.2f}")  # fmt: skip
    losses = [loss(row)[2] for row in rows if len(row) > 1]
    lines.append(f"- choice: {len(losses)} rows, {sum(one < 1.1 for one in losses)} within 10 % of the best candidate, "
                 f"the mean {np.exp(np.mean(np.log(losses))):.3f} times it, at worst {max(losses):.2f}")  # fmt: skip
    return "\n".join(lines)


def loss(row: Sequence[Found]) -> tuple[str, str, float]:
    """Return what is chosen by prices, what by measured numbers, and how many times the seconds of that it takes."""
    totals = {one.way: one.seconds + 1e-9 * CALLS * one.nanoseconds for one in row}
    mine = chosen([(one.way, *one.predicted()) for one in row])
    right = chosen([(one.way, one.nanoseconds, one.seconds) for one in row])
    return mine, right, max(1.0, totals[mine] / totals[right])


def choices_table(rows: dict[str, list[Found]]) -> str:
    """Return what is chosen by prices and by measured numbers, row by row."""
    made = [(name, *loss(row)) for name, row in rows.items() if len(row) > 1]
    lines = [[name, mine, right, f"{times:.2f}"] for name, mine, right, times in made]
    return table(("row", "chosen by prices", "by measured numbers", "times"), lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, fit if that is asked for, and write the report."""
    options = parse(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    kept, rows = options.output / "price.json", make_rows()
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else []
    found = [Found(**one) for one in known]
    for name in [] if options.kept else options.rows.split(",") if options.rows else rows:
        say(name)
        found = [one for one in found if one.row != name] + list(measure(rows[name], say))
        kept.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")
    if options.fit:
        print(left_out(found))
        idle = [one.idle for one in found]
        NANOSECONDS.update(fit(found, NANOSECONDS, lambda one: one.call, lambda one: one.nanoseconds, idle))
        SECONDS.update(fit(found, SECONDS, lambda one: one.build, lambda one: one.seconds, [0.0] * len(found)))
        print(f"NANOSECONDS = {NANOSECONDS}\nSECONDS = {SECONDS}")
    text = report(found)
    (options.output / "price.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.price", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", help="names with commas between them; default: all")
    parser.add_argument("--kept", action="store_true", help="measure nothing, go by what was measured before")
    parser.add_argument("--fit", action="store_true", help="fit the table of prices, and print it")
    results = Path(__file__).parent / "results" / machine.folder_name()
    parser.add_argument("--output", type=Path, default=results, help="the folder where the report goes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
