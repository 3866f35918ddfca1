"""The corpora of foreign functions, what became of them as records, and the page that is made of these.

`CORPORA` says which functions of which packages are tried; `scipy_calls` are the rows of `docs/scipy.md` as calls. A
record is one call: its corpus, its name, and of each way the kind of outcome, its text and how the slopes were checked.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.support import scipy_table
from tests.support.call_table import Row, cell
from tests.support.foreign_calls import Call, calls_of, plain_value

DOCUMENT = Path(__file__).parents[2] / "docs" / "foreign.md"
RECORDS = Path(__file__).parents[2] / "build" / "foreign"
WAYS = ("interpreted", "compiled")
CHECKS = ("complex steps", "50 digits", "differences")
RIGHT = ("right", "switch", "rounding")
BY_HAND = "\n## Samples, by hand\n"

CAUSES = {  # of what is wrong
    "statsmodels.genmod._tweedie_compound_poisson.logW": "its series has a term of index 0, in which gammaln is at its "
    "pole: 0, an element of an array, times an infinite slope ([extremes](extremes.md))",
    "statsmodels.distributions.copula.depfunc_ev.AsymBiLogistic.evaluate": "the kernel has all digits of the integral, "
    "by mpmath; SciPy's `quad`, which meets a kink, has nine",
}

Record = dict[str, Any]


@dataclass(frozen=True)
class Corpus:
    """The functions of a module and of those in it, with a part of their names, and the distribution that has them."""

    module: str
    distribution: str
    only: str = ""

    @property
    def name(self) -> str:
        """How it is called in the table and on the command line."""
        return f"{self.module} {self.only}".strip()

    @property
    def version(self) -> str:
        """The version that is installed."""
        return importlib.metadata.version(self.distribution)

    def calls(self) -> Iterator[Call]:
        """Yield its calls."""
        return scipy_calls() if self.module == "SciPy" else calls_of(self.module, self.only)

    def named(self, names: set[str]) -> Iterator[Call]:
        """Yield those of some names."""
        if self.module == "SciPy":
            found: list[Iterator[Call]] = [scipy_calls()] if names else []
        else:
            found = [calls_of(self.module, name.rpartition(".")[2]) for name in sorted(names)]
        yield from (call for calls in found for call in calls if call.name in names)


CORPORA = (
    Corpus("fluids", "fluids"), Corpus("statsmodels", "statsmodels"), Corpus("chemicals", "chemicals"),
    Corpus("thermo", "thermo"), Corpus("ht", "ht"), Corpus("SciPy", "scipy"), Corpus("scipy.stats", "scipy", "logpdf"),
    Corpus("pvlib", "pvlib"), Corpus("astropy.modeling", "astropy"), Corpus("lmfit", "lmfit"),
    Corpus("psychrolib", "psychrolib"), Corpus("seawater", "seawater"), Corpus("thermofeel", "thermofeel"),
    Corpus("numpy_financial", "numpy-financial"), Corpus("ambiance", "ambiance"), Corpus("iapws", "iapws"),
    Corpus("PyCO2SYS", "PyCO2SYS"), Corpus("pyet", "pyet"), Corpus("colour", "colour-science"),
)  # fmt: skip


def scipy_calls() -> Iterator[Call]:
    """Yield the rows of `docs/scipy.md` that give numbers as calls whose arguments are all differentiated."""
    for row in scipy_table.rows():
        call = _of_row(row)
        if call.places and plain_value(call, call.start) is not None:
            yield call


def _of_row(row: Row) -> Call:
    shapes, numbers = [np.shape(value) for value in row.values], np.concatenate([np.ravel(v) for v in row.values])
    function = row.function  # made once: code that is made anew at every call has ever new names

    def call(*flat: Any) -> Any:
        parts = np.split(np.stack(flat), np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
        return function(*[part.reshape(shape)[()] for part, shape in zip(parts, shapes, strict=True)])

    places = tuple((0, k) for k in range(numbers.size))
    return Call(row.text, call, tuple(numbers.tolist()), {}, places)


def record(corpus: str, version: str, call: Call, outcomes: dict[str, Any]) -> Record:
    """Return what became of a call."""
    ways = {way: [found.kind, found.text, found.check] for way, found in outcomes.items()}
    return {"corpus": corpus, "version": version, "name": call.name, "arguments": len(call.places), **ways}


def kept(folder: Path = RECORDS) -> list[Record]:
    """Return all records, in the order of the corpora."""
    files = [folder / f"{corpus.name}.jsonl" for corpus in CORPORA]
    lines = [line for file in files if file.exists() for line in file.read_text(encoding="utf-8").splitlines()]
    return [json.loads(line) for line in lines]


def cause(text: str) -> str:
    """Return what a refusal says without its place, the names and the numbers in it."""
    kind, _, rest = text.partition(": ")
    what = re.sub(r"^\S+:\d+: ", "", rest).partition(": ")[0]
    return f"{kind}: " + re.sub(r"'[^']*'|\([^()]*\)|~?-?\d[\d.e+-]*", "...", what)


def document(records: list[Record], day: str) -> str:
    """Return the page: what became of the functions of each corpus, what is wrong, and why others are refused."""
    lines = _INTRODUCTION.format(functions=len(records), day=day).splitlines()
    for way in WAYS:
        lines += ["", f"## {way.capitalize()}", "", *_table(records, way)]
    lines += [
        "",
        "## Not right and not refused",
        "",
        *_named(records),
        "",
        "## Refused, by cause",
        "",
        *_causes(records),
    ]
    return "\n".join(lines) + "\n"


def _table(records: list[Record], way: str) -> list[str]:
    heading = ["corpus", "functions", "right", *(f"by {check}" for check in CHECKS), "at a switch", "rounding",
               "refused", "too slow", "raises as the plain call", "not ours", "wrong"]  # fmt: skip
    lines = ["| " + " | ".join(heading) + " |", "|---" + "|--:" * (len(heading) - 1) + "|"]
    names = list(dict.fromkeys(found["corpus"] for found in records))
    for name in [*names, "all"]:
        group = [found for found in records if name in (found["corpus"], "all")]
        kinds = Counter(found[way][0] for found in group)
        checks = Counter(found[way][2] for found in group if found[way][0] == "right")
        numbers = [len(group), sum(kinds[kind] for kind in RIGHT), *(checks[check] for check in CHECKS)]
        numbers += [kinds[kind] for kind in ("switch", "rounding", "refused", "slow", "raises", "crash", "wrong")]
        title = f"{name} {group[0]['version']}" if name != "all" else "**all**"
        lines.append(f"| {title} | " + " | ".join(map(str, numbers)) + " |")
    return lines


def _named(records: list[Record]) -> list[str]:
    found = [
        f"| `{cell(record['name'])}` | {way} | {record[way][0]} | {_cause_of(record, way)} |"
        for record in records
        for way in WAYS
        if record[way][0] in ("wrong", "crash", "slow", "raises")
    ]
    return ["| function | way | | what differs |", "|---|---|---|---|", *found]


def _cause_of(record: Record, way: str) -> str:
    known = CAUSES.get(record["name"], "") if record[way][0] == "wrong" else ""
    return cell(f"{record[way][1]}; {known}" if known else record[way][1])


def _causes(records: list[Record]) -> list[str]:
    groups: dict[str, list[tuple[str, str]]] = {}
    for found in records:
        for way in WAYS:
            if found[way][0] == "refused":
                groups.setdefault(cause(found[way][1]), []).append((found["name"], way))
    lines = ["| cause | interpreted | compiled | the first of them |", "|---|--:|--:|---|"]
    for text, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        counts = Counter(way for _, way in members)
        lines.append(f"| {cell(text)} | {counts[WAYS[0]]} | {counts[WAYS[1]]} | `{cell(members[0][0])}` |")
    return lines


_INTRODUCTION = """\
# Foreign functions

Generated by `python -m tests.foreign`; do not edit. {functions} functions of packages that nobody here wrote,
unmodified, with the numbers of their docstrings' examples, or drawn ones, on {day}. Each is differentiated in every
number among its arguments, on numbers ("interpreted") and as a kernel ("compiled").

- **Right**: value and gradient are those of the plain call. Every gradient is compared with extrapolated differences
  of plain calls (to a millionth), and to eight digits with complex steps of the unmodified function, or, where that
  takes no complex numbers, with differences at 50 digits of its traced program - which has no derivative in it - if
  this has the values of plain calls at five points. "By differences" are those that have neither: a solver's or an
  integral's, and those with a kink at the point.
- **At a switch**: right beside the point; at it an `==` or a bound is met exactly, and the derivative is that of the
  branch that Python takes. **Rounding**: the gradient is right, and differences of plain calls are not: the program,
  evaluated at 50 digits, says so.
- **Refused**: by an error of ours, which names the cause. **Too slow**: not within 30 seconds. **Raises**: on a path
  that other numbers take, as the plain call does. **Not ours**: a bare error of Python or of a package.
"""


def write_page(day: str) -> None:
    """Write the page from the records; what somebody wrote below stays."""
    _, heading, text = DOCUMENT.read_text(encoding="utf-8").partition(BY_HAND)
    DOCUMENT.write_text(document(kept(), day) + heading + text, encoding="utf-8")
