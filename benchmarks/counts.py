"""Counts of reference kernels, which must not grow: operations, lines of IR, bytes of machine code. No times.

usage: python -m benchmarks.counts [--update]

The counts are kept in counts.json beside this file. Operations are the same everywhere in strict accuracy; which ones
the fast accuracy takes, and what is written for them, depends on the processor (fused operations, width of the lanes)
and on LLVM, so these are kept by such environments, and compared where the environment is known. Bytes are those for
the processor x86-64-v3.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

import symad as sa
from benchmarks.peers.ours import Symad
from benchmarks.problems import make_problems
from codegen.emission.emit import Form
from codegen.emission.straight import modules
from codegen.engine import compile_object
from codegen.ir.program import Program
from codegen.lanes import Lanes
from codegen.lowering.passes import prepare
from codegen.machine.kernel_text import plan
from codegen.options import Accuracy, Options
from codegen.processor import has_fma, vector_bits
from symad.tracing.trace import to_program

FILE = Path(__file__).parent / "counts.json"
PROCESSOR = "x86-64-v3"
ACCURACIES: tuple[Accuracy, ...] = ("strict", "fast")
BATCH_LANES = 8
PROBLEMS = ("rosenbrock100", "rosenbrock1000", "lj10", "mlp8", "logsumexp20", "harmonics8", "bundle")
BATCHES = ("lj10", "mlp8", "bundle")
SWEEPS = ("mlp8",)
Counts = dict[str, dict[str, int]]  # kernel: {what: how many}


@dataclass(frozen=True)
class Found:
    """Operations of every strict kernel, and the counts that depend on this environment."""

    environment: str
    operations: Counts
    written: Counts


def environment() -> str:
    """Return what decides the text of a kernel and its machine code.

    >>> environment().startswith("LLVM")
    True
    """
    version = ".".join(str(part) for part in llvm.llvm_version_info)
    fused = "fused" if has_fma() else "not fused"
    return f"LLVM {version}, {platform.machine()}, {vector_bits()} bits, {fused}, {' '.join(platform.libc_ver())}"


def count() -> Found:
    """Prepare and write the reference kernels in each accuracy class, some of them for batches or as sweeps."""
    operations: Counts = {}
    written: Counts = {}
    for name, program, form in kernels():
        for accuracy in ACCURACIES:
            key = f"{name}, {accuracy}"
            number, written[key] = measured(program, accuracy, form)
            (operations if accuracy == "strict" else written).setdefault(key, {})["operations"] = number
    return Found(environment(), operations, written)


def kernels() -> Iterator[tuple[str, Program, Form]]:
    """Yield the name, the program and the form of each reference kernel."""
    ours = Symad()
    problems = make_problems()
    for name in PROBLEMS:
        problem = problems[name]
        program = to_program(sa.trace(ours.derivative(problem), problem.point))
        yield name, program, Form()
        if name in BATCHES:
            yield f"{name}, batch", program, Form(lanes=Lanes(BATCH_LANES))
        if name in SWEEPS:
            whole = sa.compile(ours.derivative(problem, whole=True), problem.point, strategy="sweep", tier="fast")
            yield f"{name}, sweep", whole.program, Form()


def measured(program: Program, accuracy: Accuracy, form: Form) -> tuple[int, dict[str, int]]:
    """Return the operations of one kernel, and the size of what is written for it."""
    prepared = prepare(program, Options(accuracy=accuracy))
    texts = modules(plan(prepared).emit(form))
    written = {"IR lines": sum(text.count("\n") for text in texts)}
    if platform.machine() in ("x86_64", "AMD64"):
        written["code bytes"] = sum(compile_object(text, 2, PROCESSOR).code_bytes for text in texts)
    return sum(prepared.plain.count().values()), written


def load() -> dict[str, Any]:
    """Return the counts that are kept."""
    kept: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return kept


def save(found: Found) -> None:
    """Keep new counts: operations, and what is written in this environment; other environments are forgotten when
    operations have changed, because theirs have too.
    """
    kept = load() if FILE.exists() else {"operations": {}, "written": {}}
    others = kept["written"] if kept["operations"] == found.operations else {}
    kept = {"operations": found.operations, "written": {**others, found.environment: found.written}}
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def changes(found: Mapping[str, Mapping[str, int]], kept: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a line for each count that has changed, and each kernel that came or went.

    >>> changes({"f": {"operations": 5}, "g": {"operations": 2}}, {"f": {"operations": 4}, "g": {"operations": 3}})
    ['f: operations have grown, 4 -> 5', 'g: operations have shrunk, 3 -> 2']
    >>> changes({"f": {"operations": 5}}, {})
    ['f: not in the file']
    """
    lines = [f"{kernel}: only in the file" for kernel in kept if kernel not in found]
    for kernel, counts in found.items():
        if kernel not in kept:
            lines.append(f"{kernel}: not in the file")
            continue
        for what, number in counts.items():
            before = kept[kernel].get(what, 0)
            if number != before:
                word = "grown" if number > before else "shrunk"
                lines.append(f"{kernel}: {what} have {word}, {before} -> {number}")
    return lines


def compare(found: Found, kept: Mapping[str, Any]) -> list[str]:
    """Return what has changed; lines and bytes only where this environment is known."""
    known = kept["written"].get(found.environment)
    written = [] if known is None else changes(found.written, known)
    return changes(found.operations, kept["operations"]) + written


def main() -> int:
    """Compare, or update the file; return 1 when something has changed and the file was not updated."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counts", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--update", action="store_true", help="keep the new counts: for changes that are wanted")
    options = parser.parse_args()
    found = count()
    changed = compare(found, load()) if FILE.exists() else ["a new file"]
    print("\n".join(changed) or "nothing has changed")
    if options.update:
        save(found)
    return int(bool(changed) and not options.update)


if __name__ == "__main__":
    sys.exit(main())
