"""Statistics of a compilation, and their table for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from codegen.later import Deferred
from codegen.records import dataclass
from codegen.stages import Effect

if TYPE_CHECKING:
    import html
else:  # for pages
    html = Deferred("html")

LLVM, ENCODER = "LLVM", "encoder"  # generators of machine code


@dataclass(frozen=True, slots=True)
class RegionStats:
    """One loop of a kernel: how often its body is run in each of the rounds of the nests around it."""

    count: int
    rounds: int
    operations: int  # machine operations of the body, before fusion
    origin: str  # where the body was written: "file.py:12-16"
    blocks: int = 1  # parts that threads may share; 1 where one thread runs it all


@dataclass(frozen=True)
class Stats:
    """What compiling did: sizes, operations by kind, and seconds per stage.

    >>> import sympy as sp
    >>> from codegen import lambdify
    >>> x = sp.Symbol("x")
    >>> stats = lambdify([x], sp.sin(x) * sp.exp(sp.sin(x))).kernel.stats
    >>> stats.operations_before, stats.operations_after
    (4.0, 3)
    """

    nodes: int  # rows of the program that the outputs need
    operations_before: float  # operations written out as trees, without sharing
    operations_after: int  # operations after common sub-expressions are shared
    machine_operations: dict[str, int]  # by kind, before fusion
    fused: int  # multiplications that went into fused multiply-adds
    chunks: int = 1
    workspace: int = 0  # float64 values passed between chunks or loops
    seconds: dict[str, float] = field(default_factory=dict)  # by stage: those of build.py, or load
    code_bytes: int = 0
    strategy: str = "straight"  # or "sweep", see codegen.emission.straight, or "rolled", see codegen.ir.region
    executed: int = 0  # machine operations that one call carries out; one on a vector register counts once
    cached: bool = False  # the object code came from the disk cache: nothing was compiled
    passes: Sequence[tuple[str, int, int]] = ()  # of accuracy "fast": name, operations before and after
    regions: tuple[RegionStats, ...] = ()  # the loops of a rolled kernel, whose operations are those of all bodies
    generator: str = LLVM  # of the machine code: that, ENCODER, or LLVM with the reason why not the encoder
    plan: Any = None  # the plan of the caller; kept in no file

    @property
    def total(self) -> int:
        """Number of machine operations before fusion."""
        return sum(self.machine_operations.values())

    def _repr_html_(self) -> str:
        return table("What compiling did", figures(self))


def stats_of(kept: Mapping[str, Any]) -> Stats:
    """Return statistics from their stored form."""
    passes = tuple(Effect(*effect) for effect in kept["passes"])
    regions = tuple(RegionStats(**region) for region in kept["regions"])
    return Stats(**{**kept, "passes": passes, "regions": regions})


def figures(stats: Stats) -> list[tuple[str, str]]:
    """Return the statistics of a compilation, each with its name."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(stats.machine_operations.items()))
    stages = ", ".join(f"{stage} {_milliseconds(seconds)}" for stage, seconds in stats.seconds.items())
    rows = [
        ("operations as written", f"{stats.operations_before:,.0f}, shared {stats.operations_after:,}"),
        ("machine operations", f"{stats.total:,} ({kinds})" if kinds else f"{stats.total:,}"),
        ("of a call", f"{stats.executed:,}"),
        ("strategy", {"straight": "straight lines", "rolled": "loops"}.get(stats.strategy, stats.strategy)),
        ("loops", "; ".join(f"{loop.count:,} of {loop.origin or 'a body'}" for loop in stats.regions)),
        ("build", "from the disk cache" if stats.cached else f"{_milliseconds(sum(stats.seconds.values()))}: {stages}"),
        ("machine code", f"{stats.code_bytes:,} bytes" + (f", {stats.chunks} functions" if stats.chunks > 1 else "")),
        ("generator", stats.generator),
        ("workspace", f"{stats.workspace:,} numbers" if stats.workspace else ""),
        ("plan", "" if stats.plan is None else str(stats.plan)),
    ]
    return [(name, value) for name, value in rows if value]


def table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table with a caption as HTML.

    >>> table("a < b", [("sum", "3")])
    '<table><caption>a &lt; b</caption><tr><th scope="row">sum</th><td>3</td></tr></table>'
    """
    body = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>' for name, value in rows
    )
    return f"<table><caption>{html.escape(caption)}</caption>{body}</table>"


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.1 else f"{seconds:.2g} s"
