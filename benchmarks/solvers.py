"""Whole processes that solve a problem with Ipopt, and their callbacks: `python -m benchmarks.solvers`.

Each way is a process of its own: it imports, makes the derivatives and solves; its processor time is what the system
counted, the best of some (of one where n is 10^5 or more). symad builds its kernels ("built"), or loads them from the
folder that `Problem.save` wrote, as the user who saved it ("loaded") or as another one, whose programs are compiled
("loaded elsewhere"); CasADi has every scalar (SX), or maps one
step (MX). Callbacks are microseconds of one call of the sparse Jacobian and of the Hessian of the Lagrangian, in a
process of their own. Ipopt is that of `ipyopt` for symad and CasADi's own for CasADi, both with MUMPS.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.solver_problems import PROBLEMS, chain_cost, chain_limits, in_casadi, swing_cost, swing_limits
from benchmarks.tables import table

WAYS = ("built", "loaded", "loaded elsewhere", "SX", "MX")
TITLES = {"built": "symad built", "loaded": "symad loaded", "loaded elsewhere": "symad loaded elsewhere",
          "SX": "CasADi SX", "MX": "CasADi MX map"}  # fmt: skip
FUNCTIONS = {"chain": (chain_cost, chain_limits), "swing": (swing_cost, swing_limits)}
ROUNDS, CALLS = 5, 20
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "SYMAD_CACHE": ""}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; a child process solves one problem in one way and prints what it found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.solvers", description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--ways", default="|".join(WAYS), help="separated by |")
    parser.add_argument("--child", nargs=5, metavar=("PROBLEM", "N", "WAY", "FOLDER", "WHAT"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        name, n, way, folder, what = options.child
        print(json.dumps(child(name, int(n), way, folder, what)))
        return 0
    rows = []
    for name in options.problems.split(","):
        for n in map(int, options.sizes.split(",")):
            rows += measured(name, n, options.ways.split("|"))
    print(table(["problem", "n", "way", "process s", "iterations", "optimum", "Jacobian us", "Hessian us"], rows))
    return 0


def measured(name: str, n: int, ways: Sequence[str]) -> list[list[str]]:
    """Return the rows of one problem of one size; rounds are interleaved."""
    with tempfile.TemporaryDirectory() as folder:
        if any(way.startswith("loaded") for way in ways):
            run(name, n, "built", folder, "save")
        found: dict[str, dict[str, Any]] = {}
        for _ in range(1 if n >= 100_000 else ROUNDS):
            for way in ways:
                latest = run(name, n, way, folder, "solve")
                if way not in found or latest["seconds"] < found[way]["seconds"]:
                    found[way] = latest
        calls = {way: run(name, n, way, folder, "calls") for way in ways if not way.startswith("loaded")}
    rows = []
    for way, latest in found.items():
        times = calls.get(way, {})
        callbacks = [f"{times[kind]:.3g}" if kind in times else "" for kind in ("jacobian", "hessian")]
        row = [name, str(n), TITLES[way], f"{latest['seconds']:.3f}", str(latest["iterations"])]
        rows.append([*row, f"{latest['optimum']:.8g}", *callbacks])
    return rows


def run(name: str, n: int, way: str, folder: str, what: str) -> dict[str, Any]:
    """Return what a process found, and its processor time."""
    home = Path(folder) / ("another" if way == "loaded elsewhere" else "own")  # where the key of saved files is
    environment = os.environ | ALONE | {"XDG_DATA_HOME": str(home)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # without bytecode every import is compiled again
    line = [sys.executable, "-m", "benchmarks.solvers", "--child", name, str(n), way, folder, what]
    process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(line)} ended with {process.returncode}")
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found | {"seconds": usage.ru_utime + usage.ru_stime}


def child(name: str, n: int, way: str, folder: str, what: str) -> dict[str, Any]:
    """Do what one process does."""
    if way in ("SX", "MX"):
        return by_casadi(name, n, way, what)
    import symad as sa  # noqa: PLC0415 - what a process imports is measured

    given = PROBLEMS[name](n)
    saved = Path(folder) / "problem"
    problem: Any = sa.Problem(*FUNCTIONS[name], bounds=given.bounds) if way == "built" else sa.load(saved)
    if what == "save":
        problem.save(saved, given.start)
        return {}
    if what == "calls":
        kernels = problem.kernels(given.start)
        weights = np.ones(kernels.rows), 1.0
        return {"jacobian": of_one(lambda: kernels.jacobian(given.start)),
                "hessian": of_one(lambda: kernels.hessian(given.start, *weights))}  # fmt: skip
    found = problem.minimize(given.start, solver="ipopt")
    return {"iterations": found.nit, "optimum": found.fun}


def by_casadi(name: str, n: int, form: str, what: str) -> dict[str, Any]:
    """Do the same with CasADi."""
    import casadi as ca  # noqa: PLC0415 - what a process imports is measured

    given = PROBLEMS[name](n)
    problem = in_casadi(name, given.start.shape[-1], form, ca)
    solver = ca.nlpsol("solver", "ipopt", problem, {"ipopt": {"print_level": 0, "sb": "yes"}, "print_time": 0})
    sides = {
        key: ca.DM(side.ravel()) for key, side in zip(("lbx", "ubx"), given.bounds, strict=True) if side is not None
    }
    if what == "calls":
        return {"jacobian": of_function(solver.get_function("nlp_jac_g"), given, ca),
                "hessian": of_function(solver.get_function("nlp_hess_l"), given, ca)}  # fmt: skip
    found = solver(x0=given.start.ravel(), lbg=0, ubg=0, **sides)
    return {"iterations": solver.stats()["iter_count"], "optimum": float(found["f"])}


def of_function(function: Any, given: Any, ca: Any) -> float:
    """Return microseconds of a call without copies: arguments and results are buffers."""
    buffer, run_it = function.buffer()
    kept = [np.ones(function.nnz_in(k)) for k in range(function.n_in())]
    kept[0] = np.array(given.start, dtype=float).ravel()
    results = [np.zeros(function.nnz_out(k)) for k in range(function.n_out())]
    for k, array in enumerate(kept):
        buffer.set_arg(k, memoryview(array))
    for k, array in enumerate(results):
        if function.name() != "nlp_jac_g" or k == 1:
            buffer.set_res(k, memoryview(array))
    return of_one(run_it)


def of_one(call: Any) -> float:
    """Return microseconds of processor time, the best of some calls."""
    times = []
    for _ in range(CALLS):
        before = time.process_time()
        call()
        times.append(time.process_time() - before)
    return 1e6 * min(times)


if __name__ == "__main__":
    sys.exit(main())
