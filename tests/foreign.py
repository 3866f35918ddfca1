"""Foreign code: every public function of installed packages that takes numbers, differentiated and compared.

python -m tests.foreign [--jobs N] [--again NAME...]        (all corpora: writes docs/foreign.md)
python -m tests.foreign chemicals lmfit.lineshapes scipy.stats [--only NAME] [--all] [--seconds N]

Every number among the arguments (see `tests.support.foreign_calls`) is differentiated: the value is compared with the
plain call, the gradient with extrapolated central differences of plain calls, interpreted and as a kernel. Each
function is right, refused (by an error of ours), slow or wrong; `crash` is an error that is not ours, `raises` one
that the plain call raises too, for other numbers. At a `switch` (an `==`, a bound that is met exactly) the derivative
is that of the branch that Python takes. `rounding` is what its own program, evaluated at 50 digits, contradicts:
doubles lose half of the digits, or it has the plain calls' very numbers and other slopes. What is right is compared
with exact slopes, too (`tests.support.foreign_checks`). Refusals are counted by their causes. Without a package each
corpus is tried in a process of its own; `--again NAME` tries some of them again, `--again wrong` what was wrong,
`--again refused slow` what was refused or slow, and keeps what became of the others.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import math
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import numpy as np

import symad as sa
from symad.errors import WorkbenchError
from tests.support.foreign_calls import SECONDS, Call, moved, plain_value, put, raises_itself
from tests.support.foreign_checks import UNKNOWN, Slopes, exact_slopes, program_value, slope_in_digits
from tests.support.foreign_corpora import CORPORA, RECORDS, Corpus, Record, cause, kept, record, write_page
from tests.support.time_limits import TooLongError, limited

LONGEST = 30  # seconds for one way of differentiating
BESIDE = (1e-5, -1e-3, 1e-3)  # relative distances
HALF = 2.0**26  # in units of the last place
CLOSE = 1e-6  # relative: differences have no more digits
LAST_DIGITS = 2.0**-50  # relative: four units in the last place
OUTCOMES = {"wrong", "crash", "refused", "slow"}  # that may be tried again
STEPS = tuple(2.0**-k for k in range(4, 22))  # of differences, relative


@dataclass(frozen=True)
class Outcome:
    """What became of one way of differentiating: right, refused, wrong, crash or slow; and why."""

    kind: str
    text: str = ""
    check: str = ""  # of one that is right


WAYS: dict[str, Callable[[Call], tuple[Any, Any]]] = {
    "interpreted": lambda call: sa.value_and_grad(call.of_list)(call.start),
    "compiled": lambda call: sa.compile(sa.value_and_grad(call.of_list), call.start)(call.start),
}


def outcome(call: Call, way: str, exact: Slopes = UNKNOWN) -> Outcome:
    """Differentiate a call in one way, and compare; what differs is looked at again beside the point."""
    found = _compared(call, way, exact)
    if found.kind != "wrong":
        return found
    for by in BESIDE:
        beside = _beside(call, by)
        if plain_value(beside, beside.start) is not None and _compared(beside, way).kind == "right":
            return Outcome("switch", f"right beside the point; at it, {found.text}")
    return Outcome("rounding", found.text) if _is_rounding(call) or _is_noise(call, way) else found


def _compared(call: Call, way: str, exact: Slopes = UNKNOWN) -> Outcome:
    start = call.start
    expected = plain_value(call, start)
    if expected is None:
        return Outcome("slow", "the plain call itself")
    try:
        with limited(LONGEST):
            value, gradient = WAYS[way](call)
    except TooLongError:
        return Outcome("slow")
    except WorkbenchError as error:
        return Outcome("refused", f"{type(error).__name__}: {error}")
    except Exception as error:
        return Outcome("raises" if raises_itself(call, error) else "crash", f"{type(error).__name__}: {error}")
    slopes = np.atleast_1d(np.asarray(gradient, dtype=float))
    lost = 1e-14 * float(np.sum(np.abs(slopes * start)))  # by rounding, where large numbers cancel
    if not _close(value, expected, 1e-9 * abs(expected) + lost):
        return Outcome("wrong", f"value {value} for {expected}")
    check = exact.check_of(slopes.tolist(), start, expected)
    try:
        with limited(5 * SECONDS):
            for k, slope in enumerate(slopes):
                complaint = _complaint(call, start, k, float(slope))
                if complaint:
                    return Outcome("wrong", f"argument {call.places[k]}: {complaint}")
    except TooLongError:
        return Outcome("right", "", check) if check else Outcome("slow", "to compare")
    return Outcome("right", "", check or "differences")


def _beside(call: Call, by: float) -> Call:
    """Return the call with its numbers moved a little."""
    arguments: Any = (call.args, call.keywords)
    for place, number in zip(call.places, moved(call, by), strict=True):
        arguments = put(arguments, place, number)
    return Call(call.name, call.function, *arguments, call.places)


def _is_rounding(call: Call) -> bool:
    """Whether doubles lose half of the digits of what is computed: the kernel's program at 50 digits says so."""
    try:
        with limited(LONGEST):
            kernel = sa.compile(sa.value_and_grad(call.of_list), call.start)
            return sa.verify(kernel, call.start).worst_ulp > HALF
    except (Exception, TooLongError):
        return False


def _is_noise(call: Call, way: str) -> bool:
    """Whether plain calls lose the digits: the traced program has their numbers, and at 50 digits our slopes."""
    start = call.start
    try:
        with limited(5 * SECONDS):
            traced, (_, gradient) = sa.trace(call.of_list, start), WAYS[way](call)
            return all(_agrees(call, traced, k, float(slope)) for k, slope in enumerate(np.atleast_1d(gradient)))
    except (Exception, TooLongError):
        return False


def _agrees(call: Call, traced: sa.results.Trace, k: int, slope: float) -> bool:
    """Whether a program has the numbers of plain calls along argument k, and at 50 digits this slope."""
    start, scale = call.start, abs(call.start[k]) or 1.0

    def value(number: Any, arithmetic: str) -> Any:
        return program_value(traced, [*start[:k], number, *start[k + 1 :]], arithmetic)

    for number in (start[k] + side * step * scale for step in STEPS for side in (1, -1)):
        plain = plain_value(call, [*start[:k], number, *start[k + 1 :]])
        if plain is None or not _close(value(number, "float64"), plain, LAST_DIGITS * abs(plain)):
            return False
    exact = slope_in_digits(call, traced, k)
    return _close(slope, exact, CLOSE * abs(exact))


def _complaint(call: Call, start: Sequence[float], k: int, slope: float) -> str:
    """Return what is wrong with a partial derivative, "" if nothing is; at a kink either side's will do."""
    found = [_difference(call, start, k, sides) for sides in ((1, -1), (1, 0), (0, -1))]
    if any(math.isnan(expected) for expected, _ in found[:1]) or any(_close(slope, *pair) for pair in found):
        return ""
    return f"{slope!r} for {found[0][0]!r} (one side {found[1][0]!r}, the other {found[2][0]!r})"


def _difference(call: Call, start: Sequence[float], k: int, sides: tuple[int, int]) -> tuple[float, float]:
    """Return an extrapolated difference quotient and how far it may be off: what neighbouring steps differ by."""
    scale = abs(start[k]) or 1.0
    size = abs(plain_value(call, start) or 0.0)
    quotients, noise = [], []
    for step in STEPS:
        ends = [plain_value(call, [*start[:k], start[k] + side * step * scale, *start[k + 1 :]]) for side in sides]
        width = (sides[0] - sides[1]) * step * scale
        quotients.append(math.nan if None in ends else (ends[0] - ends[1]) / width)  # type: ignore[operator]
        noise.append(1e-15 * size / abs(width))
    order = 4 if sides == (1, -1) else 2
    better = [(order * fine - rough) / (order - 1) for rough, fine in pairwise(quotients)]
    trio = [(abs(b - a), b, n) for (a, b), n in zip(pairwise(better), noise[2:], strict=True)]
    pairs = [pair for pair in trio if not math.isnan(pair[0])]
    if not pairs:
        return math.nan, 0.0
    off, best, noisy = min(pairs, key=lambda pair: pair[0] + pair[2])
    off_by = CLOSE * max(abs(best), size / scale * 1e-3) + 10 * (off + noisy)
    return best, off_by + sys.float_info.min  # below that, numbers have few digits


def _close(found: float, expected: float, off: float) -> bool:
    return bool(found == expected or abs(found - expected) <= off or (math.isnan(found) and math.isnan(expected)))


def _with_stand_ins(x: Any) -> Any:
    return math.sin(x)


def main(arguments: Sequence[str]) -> int:
    """Differentiate the packages; the status is the number of wrong results."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign")
    parser.add_argument("packages", nargs="*", help="or corpora; none: all corpora, and the page")
    parser.add_argument("--only", default="", help="functions with this in their names")
    parser.add_argument("--all", action="store_true", help="also name what is refused or slow")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for each package: where it ends")
    parser.add_argument(
        "--again", nargs="*", default=[], metavar="NAME", help="corpora, or outcomes; the others are kept"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes, for all corpora")
    parser.add_argument("--records", type=Path, help="a file for what became of each")
    options = parser.parse_args(arguments)
    if options.again and OUTCOMES.issuperset(options.again):
        return _outcomes_again(options.again)
    if not options.packages:
        return _all_corpora(options.again, options.jobs)
    sa.verify(
        sa.compile(sa.value_and_grad(_with_stand_ins), 1.0), 1.0
    )  # imports all that a limit of time must not cut off
    known = {corpus.name: corpus for corpus in CORPORA}
    corpora = [known.get(name) or Corpus(name, _distribution(name), options.only) for name in options.packages]
    return sum(_package(corpus, options.all, options.seconds, options.records) for corpus in corpora)


def _distribution(package: str) -> str:
    """Return the distribution that a package was installed from, ours for code of our own."""
    return importlib.metadata.packages_distributions().get(package.partition(".")[0], ["symad"])[0]


def _all_corpora(again: Sequence[str], jobs: int) -> int:
    """Try all corpora, each in a process of its own, and write the page; the status is the number of wrong results."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    names = [corpus.name for corpus in CORPORA if not again or corpus.name in again]

    def run(name: str) -> None:
        command = [sys.executable, "-m", "tests.foreign", name, "--all", "--records", RECORDS / f"{name}.jsonl"]
        with (RECORDS / f"{name}.txt").open("w", encoding="utf-8") as log:
            status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
        lines = (RECORDS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        print(*lines[-3:], *[f"{name}: ended by signal {-status}"] * (status < 0), sep="\n", flush=True)

    with ThreadPool(jobs) as pool:
        pool.map(run, names, chunksize=1)
    write_page(datetime.date.today().isoformat())
    return sum(found[way][0] == "wrong" for found in kept() for way in WAYS)


def _outcomes_again(outcomes: Sequence[str]) -> int:
    """Try what had such an outcome again, and write the page; the status is the number of wrong results."""
    for corpus in CORPORA:
        file = RECORDS / f"{corpus.name}.jsonl"
        found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        names = {line["name"] for line in found if any(line[way][0] in outcomes for way in WAYS)}
        again = {call.name: _tried(corpus, call)[1] for call in corpus.named(names)}
        lines = [json.dumps(again.get(line["name"], line)) for line in found]
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    write_page(datetime.date.today().isoformat())
    return sum(found[way][0] == "wrong" for found in kept() for way in WAYS)


def _tried(corpus: Corpus, call: Call) -> tuple[dict[str, Outcome], Record]:
    """Return what became of a call, in each way and as a record."""
    exact = exact_slopes(call)
    outcomes = {way: outcome(call, way, exact) for way in WAYS}
    return outcomes, record(corpus.name, corpus.version, call, outcomes)


def _package(corpus: Corpus, everything: bool, seconds: float, records: Path | None) -> int:
    """Differentiate the functions of a corpus, print what became of them, and return how many are wrong."""
    counts: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
    causes: Counter[str] = Counter()
    started = time.monotonic()
    if records is not None:
        records.write_text("", encoding="utf-8")
    for call in corpus.calls():
        if time.monotonic() - started > seconds:
            print(f"{corpus.name}: ended before {call.name}")
            break
        outcomes, line = _tried(corpus, call)
        for way, found in outcomes.items():
            counts[way][found.kind] += 1
            causes[cause(found.text)] += found.kind == "refused"
            if found.kind in ("wrong", "crash") or (everything and found.kind != "right"):
                print(f"{way} {call.name}: {found.kind}: {found.text}", flush=True)
        if records is not None:
            with records.open("a", encoding="utf-8") as file:
                print(json.dumps(line), file=file)
    for text, count in causes.most_common():
        if count:
            print(f"{corpus.name}, refused: {count} {text}")
    for way, kinds in counts.items():
        print(f"{corpus.name}, {way}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    print(f"{corpus.name}: {time.monotonic() - started:.0f} s")
    return sum(kinds["wrong"] for kinds in counts.values())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(min(main(sys.argv[1:]), 100))
