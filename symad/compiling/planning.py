"""Plan: trace once, price every way to compile, decide once.

A way is priced from its own program if that was written, else from another way's: straight lines of a large matrix can
be refused unwritten.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import symad.tracing.values.containers as containers
from codegen.collector import fewer_collections
from codegen.functions.libraries import EXTRA, has_library
from codegen.ir.program import Program, operations_of
from codegen.ir.region import Nest
from codegen.limits import limits
from codegen.loops.loop import Loop, StraightError
from codegen.loops.roll import Roll, repeats_enough
from codegen.lowering.halves import columns_at_once, side_by_side
from codegen.matrices.matrix_loops import asks_library, only_whole
from codegen.pricing.price import halves_of, rolled_work, rows_work, straight_work, sweep_work, unrolled_work
from codegen.pricing.price_table import NANOSECONDS, SECONDS, Price, Way, cheapest
from codegen.stages import allowed, stage
from symad.compiling.candidates import (
    MATRICES,
    RULES,
    Primal,
    Rolled,
    columns_of,
    differentiated_loops,
    in_rounds,
    primal_of,
    seeded_program,
    traced_with_loops,
    transforms_of,
    unrolled_lines,
    written_operations,
)
from symad.compiling.plan import WAYS, Candidate, CompilationPlan, PlanOptions, Strategy, time_text
from symad.compiling.shared_traces import can_be_replayed, replayed, traces
from symad.derivatives.in_code import TransformRecord
from symad.derivatives.loops.checkpoints import Checkpoints
from symad.derivatives.modes import record
from symad.derivatives.second_order import derivative_operations
from symad.errors import ArgumentError, InvariantError, LimitError, WorkbenchError
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.memory import telling
from symad.tracing.calling.recorded_errors import discarding_recorded_errors
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import written_at
from symad.tracing.control.paths import MAX_PATHS
from symad.tracing.control.stale_values import StaleValueCheck
from symad.tracing.control.written_bodies import ENDLESS
from symad.tracing.trace import StructuredTrace, Trace, to_program, trace, trace_ours
from symad.tracing.values.complex_points import complex_points
from symad.tracing.values.container_types import static_parts
from symad.transforms.first_order import derivative, grad, hessian, jacobian, value_and_grad

Function = Callable[..., Any]

FEWEST_COLUMNS = 4  # a sweep over fewer columns saves nothing
FEWEST_PRODUCTS = 200  # columns times operations of the function: straight lines are called as fast, and soon written
SWEPT = 0.25  # nanoseconds of a block of columns for each operation of f, at least: of twelve Hessians 0.31 to 2.2
USUAL = 4  # times the least that a sweep takes: nine of the twelve take less
CLEARLY = 2.0  # times: one way is expected to be faster than another, whatever is wrong with the prediction
LARGEST_SWEEP = 5000  # operations that a function with loops carries out, whose matrix may be swept
LARGEST_CLEAR_SWEEP = 50_000  # the same where a sweep is expected to be clearly faster: it is written in some 2 s
LARGEST_BY_COLUMNS = 20_000  # the same, and entries, where loops go through it for every column
SOLVER_CALLS = 10.0  # of a kernel of a problem that is solved once
REGIONS = 2  # loops in the kernel of a small problem: of twelve 1 to 8
ONLY_LOOPS = "an operation on a whole array (a factorization, an order) has no other form"
SEARCHES = "a loop that ends when it has found something would not end in straight lines"
NO_COLUMNS = "only a dense Hessian or Jacobian in one array has columns"
LEFT_OUT = "SYMAD_BISECT leaves it out"
WIDTH = 160  # of the text of a plan in a file


@public_api
def plan(
    f: Function,
    *example_args: Any,
    strategy: Strategy = "auto",
    roll: Roll = "auto",
    checkpoints: Checkpoints = "all",
    max_paths: int = MAX_PATHS,
    freeze: bool = False,
    dtype: str = "float64",
    max_ops: int | None = None,
    max_seconds: float | None = None,
    max_bytes: float | None = None,
) -> CompilationPlan:
    """Return what `compile` does with a function and arguments like the examples, and why; nothing is compiled.

    The options are those of `compile`. The function is run once for each of its paths; only where it has custom rules
    or loops that were written down, or does the same to small arrays in rounds, is it run again. The choice minimises
    the time to build and a million calls; loops are taken unless straight lines are one and a half times as fast to
    call. Times are predictions: only their ratios mean anything (docs/design/price.md). ArgumentError for options that
    exclude each other, or ask for a way that there is not; LimitError for more nested calls than Python allows.

    >>> import numpy as np
    >>> found = plan(grad(lambda x: np.sum(np.sin(x) * x)), np.ones(1000))
    >>> found.chosen, [each.way for each in found.candidates], found.refused
    ('rolled', ['straight', 'rolled'], {'sweep': 'only a dense Hessian or Jacobian in one array has columns'})
    """
    options = PlanOptions(strategy, roll, checkpoints, max_paths, dtype, freeze)
    options.check()
    if dtype != "float64":
        example_args = containers.real_parts(example_args)
    most = (max_ops, max_seconds, max_bytes)
    with limits(*most) if most != (None,) * 3 else nullcontext(), telling(), fewer_collections():
        try:
            return _planned(f, example_args, options)
        except RecursionError as error:
            raise LimitError(
                f"tracing {name_of(f)} needs more calls in each other than {sys.getrecursionlimit()}, Python's limit",
                why="each of nested derivatives takes some 15 calls, and a function that calls itself has no end",
                do="for derivatives of high order in one direction, sa.taylor; or raise sys.setrecursionlimit",
            ) from error


def _planned(f: Function, example_args: tuple[Any, ...], options: PlanOptions) -> CompilationPlan:
    with complex_points(options.dtype == "complex128"):
        search = Search(f, example_args, options)
        planned = search.plan()
        search.tell_stale_values()
    record(planned)
    stage("plan", lambda: planned.text(WIDTH))
    return planned


class Search:
    """The ways to compile one function, priced one after the other."""

    def __init__(self, f: Function, args: tuple[Any, ...], options: PlanOptions) -> None:
        self.f, self.args, self.options, self.name = f, args, options, name_of(f)
        self.base, self.recipes = transforms_of(f)
        self.refused: dict[Way, str] = {}
        self.primal: Primal | None = None
        self.notes: tuple[str, ...] = ()
        self.arrays = True  # whether operations on large arrays are loops
        self.at_once = True  # and so are those on arguments in even steps, from fewer elements on
        self.written_out: Candidate | None = None  # the sweep with every column written out
        self.shared = traces()
        self.watched = None if options.freeze else StaleValueCheck(f, *static_parts(args))

    def tell_stale_values(self) -> None:
        """Warn of values that the function reads and that may change."""
        if self.watched is not None:
            self.watched.tell(self.traced, self.traced_again)

    @cached_property
    def traced(self) -> Trace:
        """The one trace of the function below all transforms."""
        return self.shared_trace()

    def shared_trace(self) -> Trace:
        """Return the trace of the function in this form, shared with other plans."""
        return self.shared.once(self.base, (self.arrays, self.at_once, self.makes_matrix), self.traced_again)

    def rolled_primal(self, traced: StructuredTrace) -> Primal:
        """Return the rolled program of a trace under the function's own name."""
        has_more = traced.raised is not None or traced.in_body or traced.graph.rules
        differentiated = bool(self.recipes)
        primal = self.shared.once(
            traced, bool(differentiated and has_more), partial(primal_of, traced, self.name, differentiated)
        )
        return replace(primal, program=replace(primal.program, name=self.name))

    def traced_again(self) -> Trace:
        if self.options.without_loops:
            return trace(self.base, *self.args, max_paths=self.options.max_paths, freeze=True)
        return traced_with_loops(
            self.base, self.args, self.options.max_paths, self.options.checkpoints, arrays=self.arrays,
            at_once=self.at_once, matrix=self.makes_matrix,
        )  # fmt: skip

    @property
    def makes_matrix(self) -> bool:
        return any(recipe.transform in MATRICES for recipe in self.recipes)

    @property
    def written_down(self) -> Sequence[Loop]:
        """Loops of the trace that were written as such."""
        return self.traced.loops if isinstance(self.traced, StructuredTrace) else ()

    @property
    def searches(self) -> bool:
        """Whether a loop ends when it has found something: straight lines would not end there."""
        return any(loop.stop is not None for loop in self.written_down)

    @cached_property
    def composition(self) -> Function:
        """The function with its transforms on the nodes of the trace; the user's own if the trace is incomplete."""
        if not self.recipes or self.written_down or not can_be_replayed(self.traced):
            return self.f
        function = replayed(self.traced, name_of(self.base))
        for recipe in self.recipes:
            function = _TRANSFORMS[recipe.transform](function, recipe)
        return function

    def plan(self) -> CompilationPlan:
        loops = None if self.options.without_loops else self.loops()
        ways = self.ways(loops) if loops is None or not self.only_loops(loops) else [loops]
        chosen = _chosen(ways)
        if chosen.estimated:  # it has to be written down, and is looked at once more
            ways = [self.written_straight(), *ways[1:]]
            chosen = _chosen(ways)
        written = [written_operations(loop) for loop in self.written_down]
        return CompilationPlan(
            self.name,
            self.primal.rows.operations + sum(written) if self.primal else self.traced.count_ops(),
            self.primal.loops if self.primal else (),
            tuple(ways),
            self.refused,
            chosen.way,
            self.reason(chosen, ways),
            [*unrolled_lines(self.traced), *(self.primal.notes if self.primal else ()), *self.notes],
            self.primal,
        )

    def only_loops(self, loops: Candidate) -> bool:
        assert loops.rolled is not None
        return bool(self.options.needs_loops) or self.searches or only_whole(loops.rolled.program)

    def ways(self, loops: Candidate | None) -> list[Candidate]:
        """All possible ways, with the given loops if there are any."""
        unrolled = self.unrolled(loops)
        sweep = self.sweep(loops, [way.price for way in (unrolled, loops) if unrolled and way])
        if sweep is not None and self.options.strategy == "sweep":
            return [sweep]
        return [unrolled or self.straight(sweep), *(way for way in (sweep, loops) if way is not None)]

    def loops(self) -> Candidate | None:
        """The loops that were found or written down; None with a noted reason where there are none."""
        rolling = allowed("rolling")
        assert isinstance(self.traced, StructuredTrace)
        stage("graph", self.traced.text)
        if not rolling and not any(loop.count == ENDLESS for loop in self.written_down):
            self.refused["rolled"] = LEFT_OUT
            return None
        try:
            rolled = self.differentiated()
        except StraightError as reason:
            self.refuse("rolled", str(reason))
            return None
        program = rolled.program
        if asks_library(program) and not has_library():
            self.notes += (f"matrix operations are loops, as SciPy's BLAS and LAPACK are missing: {EXTRA}",)
        assert self.primal is not None
        if not (self.options.needs_loops or self.searches or repeats_enough(program) or only_whole(program)):
            self.refuse(
                "rolled", f"little is repeated: {program.executed} operations a call, {program.operations} written"
            )
            return None
        price = rolled_work(program, self.primal.operations).price
        return Candidate("rolled", program.executed, program.operations, price, rolled=rolled)

    def differentiated(self) -> Rolled:
        """Return the loops with all transforms, those of large arrays written out if necessary; or StraightError."""
        assert isinstance(self.traced, StructuredTrace)
        of_matrix = self.traced.of_arrays and self.makes_matrix
        try:
            self.primal = self.rolled_primal(self.traced)
            if self.at_once and self.traced.of_small_arrays and in_rounds(self.primal.program):
                self.at_once = False
                self.traced = self.shared_trace()
                return self.differentiated()
            return differentiated_loops(self.primal, self.args, self.recipes, self.options.checkpoints)
        except StraightError as reason:
            if str(reason) == RULES and self.recipes and self.searches:  # derivatives are taken around these loops
                self.base, self.recipes = self.f, []
                self.traced = self.shared_trace()
                return self.differentiated()
            if not of_matrix:
                raise
            self.arrays = False
            self.traced = self.shared_trace()
            self.notes = (f"what is done to large arrays is written out: {reason}",)
            return self.differentiated()

    def refuse(self, way: Way, reason: str) -> None:
        """Note why a way is impossible; ArgumentError if it was asked for."""
        if way == "rolled" and self.options.needs_loops:
            option = self.options.needs_loops.replace("'", '"')
            raise ArgumentError(
                f"{option} of {self.name}",
                where=written_at(self.base),
                why="; ".join([reason, *unrolled_lines(self.traced)]),
                do="leave the option out, or write the loop down, with one body for all repetitions",
            ) from None
        if way == "sweep" and self.options.strategy == "sweep":
            raise ArgumentError(
                'strategy="sweep"',
                why=reason,
                do='compile hessian(f) or jacobian(f) of one array, or use strategy="auto"',
            )
        self.refused[way] = reason

    def sweep(self, loops: Candidate | None, others: Sequence[Price]) -> Candidate | None:
        """A dense matrix by its columns; None too if it costs more than `others` in any case."""
        if not self.options.sweeps:
            return None
        if not self.recipes or self.recipes[-1].columns is None:
            self.refuse("sweep", NO_COLUMNS)
            return None
        if not allowed("sweep"):
            self.refused["sweep"] = LEFT_OUT
            return None
        reason = self.reason_against_sweep(loops, min((price.total() for price in others), default=math.inf))
        if reason and self.options.strategy != "sweep":
            self.refuse("sweep", reason)
            return None
        try:
            with discarding_recorded_errors():
                program = seeded_program(self.composition, self.args, self.options.max_paths)
        except (LimitError, InvariantError):
            raise
        except WorkbenchError as error:
            if self.options.strategy == "sweep":
                raise
            self.refuse("sweep", f"forward over reverse mode is refused: {error}")
            return None
        if program is None:
            self.refuse("sweep", NO_COLUMNS)
            return None
        symmetric = self.recipes[-1].transform == "Hessian"
        sweep, self.written_out = sweep_candidates(program, symmetric=symmetric)
        return sweep

    def reason_against_sweep(self, loops: Candidate | None, best: float) -> str:
        """Return why a sweep is not even written down, "" if it is; `best` is the price of the best other way."""
        columns, symmetric = columns_of(self.composition, self.args), self.recipes[-1].transform == "Hessian"
        if columns is not None and columns < FEWEST_COLUMNS:
            return f"{columns} columns are too few"
        if columns is not None and not self.written_down and columns * self.traced.count_ops() < FEWEST_PRODUCTS:
            return f"{columns} columns of {self.traced.count_ops()} operations are too few"
        if self.primal is None:
            return ""
        most, executed = columns or sys.maxsize, self.primal.program.executed
        least = SWEPT * -(-most // side_by_side(most)) * executed
        if columns and symmetric and Price(least, 0.0).total() > best:
            return f"{columns} columns take {time_text(least)} at least"
        if executed <= LARGEST_SWEEP or loops is None or self.by_columns(loops):
            return ""
        if executed <= LARGEST_CLEAR_SWEEP and Price(CLEARLY * USUAL * least, 0.0).total() < loops.price.total():
            return ""
        return f"its function has more than {LARGEST_SWEEP} operations"

    def unrolled(self, loops: Candidate | None) -> Candidate | None:
        """Straight lines, priced as the loops written out; None without loops, or where they may be far fewer."""
        of_trace = not (self.recipes or self.written_down)  # and is counted there
        if loops is None or loops.rolled is None or of_trace or self.by_columns(loops):
            return None
        rolled = loops.rolled.program
        return Candidate("straight", rolled.executed, rolled.executed, unrolled_work(rolled).price)

    def straight(self, sweep: Candidate | None) -> Candidate:
        """Straight lines: priced from a sweep if that suffices, else written down."""
        written_out = self.written_out
        if sweep is not None and sweep.program is not None and written_out is not None:
            # Of a wide matrix, reverse mode may cost far less.
            tall = len(sweep.program.outputs[0].rows) >= sweep.program.inputs[-1].size
            if tall and CLEARLY * sweep.price.total() < written_out.price.total():
                return written_out
        return self.written_straight()

    def by_columns(self, loops: Candidate | None) -> bool:
        """Whether loops go through a function that is not large for every column of a matrix: a fact about the loops.

        Its straight lines and its sweep, which leave out what is 0, may have far fewer operations.
        """
        if loops is None or loops.rolled is None or not self.makes_matrix or self.written_down:
            return False
        assert self.primal is not None
        nested = any(isinstance(step, Nest) for step in loops.rolled.program.steps)
        entries = sum(output.size for output in loops.rolled.program.outputs)
        return nested and max(self.primal.program.executed, entries) <= LARGEST_BY_COLUMNS

    def written_straight(self) -> Candidate:
        if not self.recipes and not self.written_down:
            return straight_lines(self.traced, self.name)
        if self.composition is self.f:
            return straight_lines(trace(self.f, *self.args, max_paths=self.options.max_paths, freeze=True), self.name)
        return straight_lines(
            trace_ours(self.composition, self.args, self.traced.names, self.options.max_paths), self.name
        )

    def reason(self, chosen: Candidate, ways: Sequence[Candidate]) -> str:
        """Return why a way was chosen: an option asked for it, or the others cost more."""
        if option := self.options.needs_loops or self.options.without_loops:
            return option
        if chosen.rolled is not None and only_whole(chosen.rolled.program):
            return ONLY_LOOPS
        if chosen.rolled is not None and self.searches:
            return SEARCHES
        if len(ways) == 1:
            return self.refused["rolled"]
        others = [way for way in ways if way is not chosen]
        return "; ".join(f"{WAYS[way.way]} {way.costs}" for way in (chosen, *others))


def without_search(traces: Sequence[Trace], kernels: int) -> bool:
    """Whether a solver's kernels of functions cost less as straight lines than loops at least: prices before either.

    >>> import numpy as np
    >>> from symad.tracing.trace import trace
    >>> [without_search([trace(lambda x: np.sum(np.sin(x) ** 2), np.ones(n))], 3) for n in (50, 500)]
    [True, False]
    """
    written = sum(
        derivative_operations(traced.graph, traced.outputs.flat, traced.inputs.arrays[0].ravel().tolist())
        for traced in traces
    )
    searched = sum(traced.count_ops() for traced in traces)
    straight = Price(written * NANOSECONDS["average"], written * (SECONDS["row"] + SECONDS["encoded"]))
    loops = Price(0.0, searched * SECONDS["traced"] + kernels * REGIONS * SECONDS["region"])
    return cheapest({"straight": straight, "rolled": loops}, SOLVER_CALLS) == "straight"


def sweep_candidates(program: Program, *, symmetric: bool) -> tuple[Candidate, Candidate]:
    """Return a sweep, and straight lines that have every column of it written out."""
    columns, lanes, halves = program.inputs[-1].size, columns_at_once(program), halves_of(program)
    once, per_column = halves.once.total(), halves.columns.total()
    executed = once + -(-columns // lanes) * per_column  # one on the registers of several columns counts once
    rows = halves.written_out(symmetric=symmetric)
    price = rows_work(rows, len(program.outputs[0].rows) * columns).price
    sweep = Candidate("sweep", executed, once + per_column, sweep_work(program, lanes, halves).price, program)
    return sweep, Candidate("straight", rows.total(), rows.total(), price)


def straight_lines(traced: Trace, name: str) -> Candidate:
    """Return the straight lines of a trace."""
    program = to_program(traced, name)
    size = operations_of(program)
    return Candidate("straight", size, size, partial(_price_of, program), program, traced)


def _price_of(program: Program) -> Price:
    return straight_work(program).price


def _chosen(ways: Sequence[Candidate]) -> Candidate:
    if len(ways) == 1:
        return ways[0]
    way = cheapest({candidate.way: candidate.price for candidate in ways})
    return next(candidate for candidate in ways if candidate.way == way)


_TRANSFORMS: dict[str, Callable[[Function, TransformRecord], Function]] = {
    "value and gradient": lambda f, recipe: value_and_grad(f, recipe.argnums),
    "gradient": lambda f, recipe: grad(f, recipe.argnums),
    "derivative": lambda f, recipe: derivative(f),
    "Jacobian": lambda f, recipe: jacobian(f, recipe.argnums, sparse=bool(recipe.sparse), format=recipe.format),
    "Hessian": lambda f, recipe: hessian(f, recipe.argnums, sparse=recipe.sparse, format=recipe.format),
}
