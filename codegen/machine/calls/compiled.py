"""The parts of a kernel: machine code, signature, and the source of further code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from codegen.code_memory import MachineCode
from codegen.ir.program import Declared, Program
from codegen.machine.calls.statistics import Stats
from codegen.options import Options, Tier
from codegen.stages import Bisection

if TYPE_CHECKING:  # a saved kernel is called without the compiler
    from codegen.ir.region import RolledProgram
    from codegen.machine.storage.program_cache import ObjectCode, ProgramCache

Pack = Callable[[tuple[Any, ...], dict[str, Any]], Sequence[Any]]
Unpack = Callable[[list[Any]], Any]
Revive = Callable[..., Any]  # makes a kernel from portable bytes, for its pickles


class CodeSource(Protocol):
    """Where more code for a kernel comes from."""

    @property
    def program(self) -> Program | RolledProgram:
        """The program that was compiled."""

    @property
    def program_cache(self) -> ProgramCache | None:
        """Where the object code of other forms is."""

    @property
    def revive(self) -> Revive | None:
        """What makes the kernel again."""

    @property
    def file(self) -> bytes | None:
        """The file that it came from, if its machine code did."""


class Built(NamedTuple):
    """The source of a kernel that was compiled here."""

    program: Program | RolledProgram
    program_cache: ProgramCache | None = None
    revive: Revive | None = None
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
