"""Foreign array programs, at the sizes that they are used at: right, refused or wrong, and seconds beside their tools.

python -m tests.foreign_arrays [PART OF A NAME...] [--seconds N] [--keep]

The programs (`tests.support.foreign_programs`) are those of packages that are installed, and of the source archives
that are unpacked in the folder SYMAD_FOREIGN. Each is differentiated on numbers (value and gradient, a Hessian-vector
product) and compiled, in a process of its own, and compared with the tool that it uses: values and gradients to 1e-8
(where the tool is differences, 1e-6), products in two nestings of modes. The status is the number of wrong ones.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import symad as sa
from benchmarks.machine import describe, folder_name
from benchmarks.tables import number, table
from symad.errors import WorkbenchError
from tests.support.captured import flatten
from tests.support.foreign_programs import ROWS, Program

EXACT, ROUGH = 1e-8, 1e-6  # relative
WAYS = ("numbers", "products", "compiled")
HEADER = [
    "program", "package", "size", "parameters", *WAYS, "its f, ms", "its tool", "its tool, ms", "on numbers, ms",
    "a product, ms", "compiled, ms", "build, s",
]  # fmt: skip


def best(f: Callable[[], Any], seconds: float = 1.0) -> float:
    """Return the milliseconds of the fastest of several calls."""
    end, found = time.perf_counter() + seconds, float("inf")
    while time.perf_counter() < end or found == float("inf"):
        start = time.perf_counter()
        f()
        found = min(found, 1e3 * (time.perf_counter() - start))
    return found


def work(name: str) -> None:
    """Differentiate one program, and print what comes of each way, as JSON, as soon as it is known."""
    warnings.simplefilter("ignore")
    program = ROWS[name].make()
    value, gradient = program.tool(program.point)
    wanted = float(np.ravel(value)[0]), flatten(gradient)[0]
    exact = ROWS[name].tool != "differences"
    calls: dict[str, Callable[[], Any]] = {
        "f": lambda: program.function(program.point),
        "tool": lambda: program.tool(program.point),
    }
    say(way="size", parameters=len(wanted[1]))
    for way, call in calls.items():
        say(way=way, call=best(call))
    say(way="numbers", **outcome(lambda: numbers(program, wanted, EXACT if exact else ROUGH)))
    say(way="products", **outcome(lambda: products(program)))
    say(way="compiled", **outcome(lambda: compiled(program, wanted, EXACT if exact else ROUGH)))


def say(**found: Any) -> None:
    """Print a line for the process that started this one."""
    print(json.dumps(found), flush=True)


def outcome(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what a way gives, or why it gives nothing."""
    try:
        return run()
    except WorkbenchError as error:
        return {"kind": "refused", "text": f"{type(error).__name__}: {error}"}
    except Exception as error:
        return {"kind": "crash", "text": f"{type(error).__name__}: {error}"}


def compared(found: Any, wanted: tuple[float, Any], tolerance: float) -> dict[str, Any]:
    """Return whether value and gradient agree with those that are wanted."""
    value, gradient = float(np.ravel(found[0])[0]), flatten(found[1])[0]
    off = abs(value - wanted[0]) / max(abs(wanted[0]), 1e-300)
    off = max(off, float(np.max(np.abs(gradient - wanted[1])) / max(np.max(np.abs(wanted[1])), 1e-300)))
    return {"kind": "right" if off <= tolerance else "wrong", "text": f"{off:.1e}"}


def numbers(program: Program, wanted: tuple[float, Any], tolerance: float) -> dict[str, Any]:
    """Value and gradient without compiling."""
    derivative = sa.value_and_grad(program.function)
    found = compared(derivative(program.point), wanted, tolerance)
    return {**found, "call": best(lambda: derivative(program.point))}


def compiled(program: Program, wanted: tuple[float, Any], tolerance: float) -> dict[str, Any]:
    """The same as a kernel."""
    start = time.perf_counter()
    kernel = sa.compile(sa.value_and_grad(program.function), program.point)
    first = kernel(program.point)
    build = time.perf_counter() - start
    return {**compared(first, wanted, tolerance), "call": best(lambda: kernel(program.point)), "build": build}


def products(program: Program) -> dict[str, Any]:
    """A product of the Hessian and a vector, without compiling: forward over reverse, and reverse over reverse."""
    x, back = flatten(program.point)
    x = np.asarray(x, dtype=float)
    v = np.random.default_rng(0).normal(size=x.size)

    def function(flat: Any) -> Any:
        return program.function(back(flat))

    found = sa.hvp(function, (x,), (v,))
    wanted = sa.grad(lambda flat: np.dot(sa.grad(function)(flat), v))(x)
    least = 1e-12 * float(np.max(np.abs(sa.grad(function)(x))))  # of a linear function it is rounding
    off = float(np.max(np.abs(found - wanted))) / max(float(np.max(np.abs(wanted))), least, 1e-300)
    kind = "right" if off <= EXACT else "wrong"
    return {"kind": kind, "text": f"{off:.1e}", "call": best(lambda: sa.hvp(function, (x,), (v,)))}


def elsewhere(name: str, seconds: float) -> dict[str, dict[str, Any]]:
    """Return what comes of a program in a process of its own, which is ended after so many seconds."""
    command = [sys.executable, "-m", "tests.foreign_arrays", "--work", name]
    root = Path(__file__).parents[1]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=root)
        lines, errors = ended.stdout, ended.stderr
    except subprocess.TimeoutExpired as late:
        lines, errors = (late.stdout or b"").decode(), ""
    found = {each.pop("way"): each for each in map(json.loads, filter(_is_json, lines.splitlines()))}
    late_ones = {"kind": "slow", "text": f"over {seconds:.0f} s"}
    if errors and "size" not in found:
        late_ones = {"kind": "not run", "text": errors.strip().splitlines()[-1]}
    return {**dict.fromkeys(WAYS, late_ones), **found}


def _is_json(line: str) -> bool:
    return line.startswith('{"way"')


def row(name: str, found: dict[str, dict[str, Any]]) -> list[str]:
    """Return a row of the table."""
    its = ROWS[name]

    def milliseconds(way: str, key: str = "call") -> str:
        return number(found[way][key]) if key in found.get(way, {}) else "-"

    size = str(found.get("size", {}).get("parameters", "-"))
    kinds = [found[way]["kind"] for way in WAYS]
    times = [milliseconds("f"), its.tool, *map(milliseconds, ("tool", *WAYS))]
    return [
        name,
        f"{its.package} {version(its.package)}",
        its.size,
        size,
        *kinds,
        *times,
        milliseconds("compiled", "build"),
    ]


def version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def main(arguments: Sequence[str]) -> int:
    """Differentiate the programs that are asked for, and print the table and what is not right."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign_arrays", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of programs")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each program, in all ways")
    parser.add_argument("--keep", action="store_true", help="write the table among the results of benchmarks")
    parser.add_argument("--work", metavar="PROGRAM", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.work:
        work(asked.work)
        return 0
    rows, causes, wrong = [], [], 0
    for name in [name for name in ROWS if not asked.names or any(part in name for part in asked.names)]:
        found = elsewhere(name, asked.seconds)
        rows.append(row(name, found))
        causes += [f"- {name}, {way}: {told(found[way])}" for way in WAYS if found[way]["kind"] != "right"]
        wrong += sum(found[way]["kind"] in ("wrong", "crash") for way in WAYS)
        print(" | ".join(rows[-1]), flush=True)
    text = "\n\n".join([describe(iter(())), table(HEADER, rows), "\n".join(causes)])
    print(text)
    if asked.keep:
        folder = Path(__file__).parents[1] / "benchmarks" / "results" / folder_name()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "foreign_arrays.md").write_text(f"# Foreign array programs\n\n{text}\n", encoding="utf-8")
    return wrong


def told(found: dict[str, Any]) -> str:
    """Return what is not right, in one line, without the folders in which packages are."""
    text = re.sub(r"\S*/(site-packages|examples)/", "", " ".join(found["text"].split()))
    return f"{found['kind']}: {text}"


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 100))
