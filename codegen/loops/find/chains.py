"""Find chains: repetitions that each need the one before, in the trace order of a program.

Candidates come from periods (`chains_columns`), and are verified exactly (`verify_chain`); the longest wins, and of
equally long ones the one with the shortest period. Sums and maps, whose repetitions are independent, are left to
`find_sums`.
"""

from __future__ import annotations

import heapq
from bisect import bisect, insort
from collections.abc import Sequence
from math import log2
from operator import attrgetter

import numpy as np

from codegen.ir.program import Rows
from codegen.limits import check
from codegen.loops.find.chains_body import aligned, apart, divided, loop_of
from codegen.loops.find.chains_columns import LEAST_MATCHES, OperationColumns, PeriodicRun, columns_of, runs, tokens
from codegen.loops.find.flat_rows import FlatRows, flattened
from codegen.loops.find.verify_chain import Chain, needed_after, phase, recurs, verify
from codegen.loops.loop import Loop, Nodes

LEAST_OPERATIONS = 64
LARGEST_BODY = 1_000  # operations of a repetition of sums and maps, which may have chains in it
TRIALS = 2_000  # runs that are verified at most


def find_chains(
    rows: Rows, inputs: Nodes, outputs: Nodes, done: Sequence[Loop] = (), flat: FlatRows | None = None
) -> list[Loop]:
    """Return the chains in a program, as loops that do not overlap, in the order in which they run.

    Results of loops of `done` are leaves, as inputs are. About 1 to 3 microseconds for each operation.

    >>> import sympy as sp
    >>> from codegen.ir.program import Input, Output, Program
    >>> heads, operands = [sp.Symbol, *[sp.sin, sp.cos] * 40], [(), *((row,) for row in range(80))]
    >>> program = Program(heads, operands, {0: sp.Symbol("x")}, (Input("x", ()),), (Output((), (80,)),))
    >>> [(loop.count, len(loop.body)) for loop in find_chains(program, np.array([0]), np.array([80]))]
    [(40, 3)]
    """
    columns = columns_of(rows, inputs, outputs, done, flattened(rows) if flat is None else flat)
    chains = _Cover(columns).chains() if len(columns) >= LEAST_OPERATIONS else []
    loops = (loop_of(columns, aligned(chain)) for chain in apart(columns, chains))
    return [loop for loop in loops if loop is not None]


class _Cover:
    """The choice of chains: the longest first, then the rest."""

    def __init__(self, columns: OperationColumns) -> None:
        self.columns = columns
        self.queue: list[tuple[float, int, PeriodicRun, Chain | None]] = []
        self.entries = 0
        self.taken: list[Chain] = []  # in the order of the program
        self.maps: list[Chain] = []  # sums and maps
        self.least = np.zeros(len(columns), dtype=np.int64)  # repetitions that a chain within sums and maps must have

    def chains(self) -> list[Chain]:
        for run in runs(tokens(self.columns)):
            self.put(run)
        for _ in range(TRIALS):
            if not self.queue:
                break
            check("looking for chains")
            self.try_one()
        return self.taken

    def put(self, run: PeriodicRun, chain: Chain | None = None) -> None:
        """Queue a run, the longest first; of almost equally long runs the one with the shortest period."""
        size = run.stop - run.start if chain is None else chain.stop - chain.start
        if size >= LEAST_OPERATIONS // 2 and size >= LEAST_MATCHES * run.period:
            self.entries += 1
            heapq.heappush(self.queue, (-size * (1 - 0.02 * log2(run.period)), self.entries, run, chain))

    def try_one(self) -> None:
        """Verify the longest run; take it if it is still the longest then."""
        _, _, run, chain = heapq.heappop(self.queue)
        span = run if chain is None else PeriodicRun(chain.start, chain.stop, run.period)
        if self.free_pieces(span) != [span]:
            for piece in self.free_pieces(run):
                self.put(piece)
        elif chain is not None:
            insort(self.taken, chain, key=begin)
            self.put_rest(run, chain)
        elif (chain := self.verified(run)) is not None:
            self.put(run, chain)

    def verified(self, run: PeriodicRun) -> Chain | None:
        """Return the chain in a run, if it is worth having; else queue the rest of the run."""
        if any(run.period % chain.shape.period == 0 and within(run, chain) for chain in self.maps):
            return None
        start = phase(self.columns, run)
        gap = bisect(self.taken, run.start, key=begin)
        low = self.taken[gap - 1].stop if gap else 0
        high = self.taken[gap].start if gap < len(self.taken) else len(self.columns)
        chain = verify(self.columns, start, (run.stop - start) // run.period, run.period, low, high)
        chain = chain and divided(self.columns, chain)
        if chain is None or chain.count < 8 or chain.stop - chain.start < LEAST_OPERATIONS:
            return None
        inside = slice(chain.start, chain.stop)
        if not recurs(self.columns, chain, needed_after(self.columns, chain)):
            count = chain.count if run.period > LARGEST_BODY else len(self.columns)
            self.least[inside] = np.maximum(self.least[inside], count)
            self.maps.append(chain)
            self.put_rest(run, chain)
            return None
        return chain if chain.count >= self.least[inside].min() else None

    def put_rest(self, run: PeriodicRun, chain: Chain) -> None:
        """Queue the parts of a run before and after a chain."""
        if chain.start < run.stop and run.start < chain.stop:
            self.put(PeriodicRun(run.start, chain.start, run.period))
            self.put(PeriodicRun(chain.stop, run.stop, run.period))

    def free_pieces(self, run: PeriodicRun) -> list[PeriodicRun]:
        """Return the parts of a run that are in no chain."""
        edges = [run.start]
        first = bisect(self.taken, run.start, key=begin) - 1
        for chain in self.taken[max(first, 0) :]:
            if chain.start >= run.stop:
                break
            if chain.stop > run.start:
                edges += [chain.start, chain.stop]
        edges.append(run.stop)
        return [PeriodicRun(a, b, run.period) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


def within(run: PeriodicRun, chain: Chain) -> bool:
    """Whether a run is in a chain, except for parts of a repetition."""
    return chain.start - chain.shape.period < run.start and run.stop < chain.stop + chain.shape.period


begin = attrgetter("start")
