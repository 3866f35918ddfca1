"""The parts of a kernel: machine code, signature, the source of further code, and statistics with their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from codegen.code_memory import MachineCode
from codegen.ir.program import Declared, Program
from codegen.lanes import FLOAT64
from codegen.later import Deferred
from codegen.options import Options, Tier
from codegen.records import dataclass
from codegen.stages import Bisection, Effect
from codegen.visible import visible

if TYPE_CHECKING:  # a saved kernel is called without the compiler
    import html

    from codegen.ir.region import RolledProgram
    from codegen.machine.storage.program_cache import ObjectCode, ProgramCache
else:  # for pages
    html = Deferred("html")

LLVM, ENCODER = "LLVM", "encoder"  # generators of machine code

Pack = Callable[[tuple[Any, ...], dict[str, Any]], Sequence[Any]]
Unpack = Callable[[list[Any]], Any]
Restore = Callable[[Any, Declared], tuple[Pack | None, Unpack | None]]  # makes containers of what a file has of them


class CodeSource(Protocol):
    """Where more code for a kernel comes from."""

    @property
    def program(self) -> Program | RolledProgram:
        """The program that was compiled."""

    @property
    def program_cache(self) -> ProgramCache | None:
        """Where the object code of other forms is."""

    @property
    def revive(self) -> Callable[..., Any] | None:
        """What makes the kernel again, of portable bytes."""

    @property
    def file(self) -> bytes | None:
        """The file that it came from, if its machine code did."""


class Built(NamedTuple):
    """The source of a kernel that was compiled here."""

    program: Program | RolledProgram
    program_cache: ProgramCache | None = None
    revive: Callable[..., Any] | None = None
    file: bytes | None = None


class Compiled(NamedTuple):
    """The parts of a kernel: its declared arrays, its machine code, the options and the statistics."""

    declared: Declared
    library: MachineCode
    options: Options
    stats: Stats
    release: bool  # long enough to release the GIL
    source: CodeSource
    tier: Tier = "default"  # of this machine code, not "auto"
    bisection: Bisection | None = None  # passes that the first code left out
    code: ObjectCode | None = None  # that the machine code was linked from

    @property
    def program(self) -> Program | RolledProgram:
        """The program that was compiled."""
        return self.source.program


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


def heading(program: Declared, options: Options) -> str:
    """Return a kernel in one line: its name, arguments and results.

    >>> from codegen.ir.program import Declaration, Input, Output
    >>> heading(Declaration("kernel", (Input("x", (3,)), Input("s", ())), (Output((), ()),)), Options())
    'kernel(x[3], s) -> float'
    """
    inputs = ", ".join(f"{array.name}{list(array.shape) or ''}" for array in program.arguments)
    scalar = type(options.number.dtype.type(0).item()).__name__
    results = ", ".join(str(list(array.shape) or scalar) for array in program.outputs)
    return visible(f"{program.name}({inputs}) -> {results}")


def kernel_page(program: Declared, options: Options, signature: str, stats: Stats) -> str:
    """Return a kernel as HTML: its arguments and results, its options, and its statistics."""
    number = "" if options.number is FLOAT64 else f", {options.dtype}"
    sparse = [output.pattern for output in program.outputs if output.pattern is not None]
    rows = [
        ("shapes", signature),
        ("options", f"tier={options.tier!r}, accuracy={options.accuracy!r}, fma={options.fma}{number}"),
        *(("sparse result", repr(pattern).strip("<>")) for pattern in sparse),
    ]
    return table(f"Kernel {heading(program, options)}", [*rows, *figures(stats)])
