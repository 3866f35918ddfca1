"""Section "first": builds of small Hessians, the first kernel of a process and the next one, and the import.

Small Hessians are built in this process, in interleaved rounds that begin with another candidate each, the best of
each; the rest in processes of their own, the best of several, in processor time. The import is that of `hessian` and
`compile`, beyond SymPy's and NumPy's.
"""

from __future__ import annotations

import math
import subprocess
import sys

from benchmarks.goals import times
from benchmarks.peers import CANDIDATES, OURS
from benchmarks.problems import Problem, chain_of, make_problems, two_variables
from benchmarks.session import Session, timed_build
from benchmarks.tables import number, table

ROUNDS = 7
PROCESSES = 7
NAMED = ("lj10", "logsumexp20", "mlp8")
LONG = 1.0  # seconds: a build is not repeated
QUICKER, MOSTLY = 2.0, 10.0  # times quicker than the quickest peer that compiles: on every Hessian, on most
GOALS = {  # ms
    "the first kernel": 20.0, "the next kernel": 5.0, "the first one that calls exp": 20.0,
    "the import, beyond SymPy's and NumPy's": 300.0,
}  # fmt: skip

KERNELS = """import time, numpy as np, symad as sa
def first(x): return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
def second(x): return x[0] ** 3 * x[1] + x[0] / x[1]
def calling(x): return np.exp(x[0]) * x[1] ** 2 + x[0] / x[1]
x, hessian, compile = np.array([-1.2, 1.0]), sa.hessian, sa.compile
for f in (first, second, calling):
    start = time.process_time()
    compile(hessian(f), x, cache=False)(x)
    print(time.process_time() - start)"""
IMPORT = """import time, numpy, sympy
start = time.process_time()
import symad
symad.hessian, symad.compile
print(time.process_time() - start)"""


def section(session: Session) -> str:
    """Measure all three, and return two tables."""
    known = make_problems()
    problems = [two_variables(), chain_of(10), chain_of(100), *(known[name] for name in NAMED)]
    found = {problem.name: best_builds(session, problem) for problem in problems}
    starts = dict.fromkeys(GOALS, math.inf)
    for _ in range(2 if session.quick else PROCESSES):
        for name, seconds in zip(GOALS, (*in_a_process(KERNELS), *in_a_process(IMPORT)), strict=True):
            starts[name] = min(starts[name], 1e3 * seconds)
    session.data["first"] = {"builds": found, "milliseconds": starts}
    header = (
        "build, ms", "symad", "fast tier", "quickest peer that compiles", "times", "fast tier",
        f"goal {QUICKER:g}", f"goal {MOSTLY:g}",
    )  # fmt: skip
    rows = [[problem.title, *build_cells(found[problem.name])] for problem in problems]
    once = [[name, number(ms), f"{GOALS[name]:g}", verdict(GOALS[name] / ms)] for name, ms in starts.items()]
    return "\n\n".join([table(header, rows), table(("in a new process", "ms of processor time", "goal", ""), once)])


def best_builds(session: Session, problem: Problem) -> dict[str, float]:
    """Return the seconds of the best build of every candidate that compiles."""
    session.say(f"first: {problem.name}")
    best: dict[str, float] = {}
    candidates = list(session.candidates.items())
    for number_of_round in range(2 if session.quick else ROUNDS):
        turn = number_of_round % len(candidates)  # who comes after another library finds none of its code in the caches
        for name, candidate in candidates[turn:] + candidates[:turn]:
            if not candidate.compiles or best.get(name, 0.0) > LONG or (number_of_round and name not in best):
                continue
            if number_of_round:
                best[name] = min(best[name], timed_build(candidate, problem)[1])
            elif session.may_build(name, problem) and (built := session.built(candidate, problem, name)) is not None:
                best[name] = built[1]
    return best


def in_a_process(code: str) -> list[float]:
    """Return the numbers that code prints in a new process."""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [float(line) for line in ran.stdout.split()]


def build_cells(best: dict[str, float]) -> list[str]:
    """Return ours, the quickest peer, and how many times as long that one takes."""
    ours = [best.get(name, math.nan) for name in ("symad", "symad-tier")]
    peers = {name: seconds for name, seconds in best.items() if name not in OURS}
    if not peers:
        return [*(number(1e3 * seconds) for seconds in ours), "-", "-", "-", "-", "-"]
    peer = min(peers, key=peers.__getitem__)
    ratios = [peers[peer] / seconds for seconds in ours]
    goals = [verdict(max(ratios) / goal) for goal in (QUICKER, MOSTLY)]
    shown = f"{CANDIDATES[peer].name}, {number(1e3 * peers[peer])}"
    return [*(number(1e3 * seconds) for seconds in ours), shown, *map(times, ratios), *goals]


def verdict(share: float) -> str:
    """Return "met", or at how many per cent of a goal something is.

    >>> verdict(1.2), verdict(0.5)
    ('met', '50 %')
    """
    return "met" if share >= 1 else f"{100 * share:.0f} %"
