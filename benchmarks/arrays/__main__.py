"""`python -m benchmarks.arrays`: value and gradient of array programs, each tool in a process of its own.

NumPy has f alone. symad and JAX compile (both may use all cores); autograd works on numbers, and so does symad without
compiling ("numbers"). On a machine that others use too, several rounds of all tools tell more: the best times count.
All must agree on the value and on the gradient along a random direction; the exit status says whether they do.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import symad as sa
from benchmarks.arrays.programs import PROGRAMS, Array, Objective
from benchmarks.limited import failure, peak_memory
from benchmarks.machine import describe, folder_name
from benchmarks.tables import number, table

TOOLS = ("numpy", "symad", "jax", "numbers", "autograd")
TOLERANCE = 1e-9
MEMORY = 12.0  # GB
Both = tuple[float, Array]


def _numpy(f: Objective, p: Array) -> Callable[[Array], Both]:
    return lambda p: (float(f(np, p)), np.zeros_like(p))


def _symad(f: Objective, p: Array) -> Callable[[Array], Both]:
    return sa.compile(sa.value_and_grad(lambda p: f(np, p)), p, threads=2)


def _numbers(f: Objective, p: Array) -> Callable[[Array], Both]:
    return sa.value_and_grad(lambda p: f(np, p))


def _jax(f: Objective, p: Array) -> Callable[[Array], Both]:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    made = jax.jit(jax.value_and_grad(lambda p: f(jax.numpy, p)))
    return lambda p: jax.block_until_ready(made(p))


def _autograd(f: Objective, p: Array) -> Callable[[Array], Both]:
    autograd = importlib.import_module("autograd")
    return autograd.value_and_grad(lambda p: f(autograd.numpy, p))


MAKERS = {"numpy": _numpy, "symad": _symad, "jax": _jax, "numbers": _numbers, "autograd": _autograd}


def work(tool: str, name: str) -> dict[str, float]:
    """Build and call one program with one tool; the best of many calls."""
    rng = np.random.default_rng(0)
    f, p = PROGRAMS[name](rng)
    MAKERS[tool](lambda np, p: np.sum(p * p), np.ones(3))(np.ones(3))  # the library has started
    start = time.perf_counter()
    call = MAKERS[tool](f, p)
    value, gradient = call(p)
    build, best = time.perf_counter() - start, float("inf")
    end = time.perf_counter() + 2.0
    while time.perf_counter() < end:
        start = time.perf_counter()
        call(p)
        best = min(best, time.perf_counter() - start)
    along = float(np.asarray(gradient) @ rng.normal(size=p.size))
    return {"build": build, "call": best, "value": float(value), "along": along, "memory": peak_memory() / 2**20}


def elsewhere(tool: str, name: str, seconds: float) -> dict[str, Any]:
    """The same in a process of its own."""
    if tool != "numbers" and importlib.util.find_spec(tool) is None:
        return {"reason": "not installed"}
    command = [sys.executable, "-m", "benchmarks.arrays", "--work", tool, name]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=Path(__file__).parents[2])
    except subprocess.TimeoutExpired:
        return {"reason": f"no result in {seconds:.0f} s"}
    if found.returncode:
        return {"reason": failure(found.stderr, found.returncode, MEMORY)}
    made: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return made


def best_of(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what was found in several rounds as one: the best times.

    >>> best_of([{"call": 2.0, "build": 1.0}, {"reason": "no result in 3 s"}, {"call": 1.0, "build": 3.0}])
    {'call': 1.0, 'build': 1.0}
    """
    found = [each for each in rounds if "call" in each]
    return found[0] | {key: min(each[key] for each in found) for key in ("call", "build")} if found else rounds[0]


def differences(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return what tools disagree on: NumPy has no gradient."""
    said = []
    for key, tools in (("value", TOOLS), ("along", TOOLS[1:])):
        numbers = [found[tool][key] for tool in tools if key in found[tool]]
        if numbers and max(numbers) - min(numbers) > TOLERANCE * max(1.0, *map(abs, numbers)):
            said.append(f"{key}: {numbers}")
    return said


def row(name: str, found: dict[str, dict[str, Any]]) -> list[str]:
    """Return a row of the table: milliseconds of a call, seconds to build, MiB."""
    calls = [found[tool].get("call") for tool in TOOLS]
    milliseconds = ["-" if call is None else number(1e3 * call) for call in calls]
    pairs = (calls[2], calls[1]), (calls[4], calls[3])
    ahead = [f"{peer / own:.2f}" if peer and own else "-" for peer, own in pairs]
    builds = [number(found[tool]["build"]) if "build" in found[tool] else "-" for tool in ("symad", "jax")]
    memory = [f"{found[tool]['memory']:.0f}" if "memory" in found[tool] else "-" for tool in ("symad", "jax")]
    return [name, *milliseconds, *ahead, *builds, *memory]


HEADER = [
    "value and gradient", "NumPy's f, ms", "symad, ms", "JAX, ms", "symad on numbers, ms", "autograd, ms",
    "JAX / symad", "autograd / symad on numbers", "symad builds, s", "JAX builds, s", "symad, MiB", "JAX, MiB",
]  # fmt: skip


def main() -> int:
    """Run the rows that are asked for, print the table, and keep it by machine."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arrays", description=__doc__)
    parser.add_argument("rows", nargs="*", help="parts of the names of programs")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each tool and program")
    parser.add_argument("--rounds", type=int, default=1, help="of all tools, of which the best times count")
    parser.add_argument("--work", nargs=2, metavar=("TOOL", "PROGRAM"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        print(json.dumps(work(*asked.work)))
        return 0
    rows, wrong = [], []
    for name in PROGRAMS:
        if asked.rows and not any(part in name for part in asked.rows):
            continue
        rounds = [{tool: elsewhere(tool, name, asked.seconds) for tool in TOOLS} for _ in range(asked.rounds)]
        found = {tool: best_of([each[tool] for each in rounds]) for tool in TOOLS}
        rows.append(row(name, found))
        wrong += [f"{name}, {line}" for line in differences(found)]
        reasons = "; ".join(f"{tool}: {each['reason']}" for tool, each in found.items() if "reason" in each)
        print(" | ".join(rows[-1]), reasons, flush=True)
    text = "\n\n".join([describe(iter(TOOLS)), table(HEADER, rows), *(f"**{line}**" for line in wrong)])
    print(text)
    if not asked.rows:
        folder = Path(__file__).parents[1] / "results" / folder_name()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "arrays.md").write_text(f"# Array programs\n\n{text}\n", encoding="utf-8")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
