"""Which tests `.ci/check` runs: `tests/seconds.txt` lists what takes long, and this command writes it.

rm -rf build/seconds; python -m pytest -n 2 --dist worksteal -m "wide or not wide" -p tests.seconds
python -m tests.seconds

As a plugin it measures the processor time of each test, with that of the processes it starts. The list has every test,
or row of a table, that takes longer than one may, which is wide; and every table that takes longer than all of its rows
may, of which a part stays that fits. What is not listed runs. A part is spread evenly over the rows: row k stays where
k times the golden ratio has a small enough fraction, so that each column of a product has some.
"""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("seconds.txt")
MEASURED = Path(__file__).parents[1] / "build" / "seconds"
LONGEST, LONGEST_ROW, LONGEST_TABLE = 0.4, 0.15, 0.08  # seconds: of a test, of a row, of all rows of a table that stay
WHOLE = ("tests/repository/", "tests/typed/")  # examples, pages, commands, types: all of their rows run
LONGEST_WHOLE = 6.0
GOLDEN = (5**0.5 - 1) / 2
_HEAD = "# Seconds of what takes long; `.ci/wide` runs it, `.ci/check` some rows of tables. Written by tests.seconds.\n"


def listed() -> dict[str, float]:
    """Return the seconds of the tests, rows and tables that are listed."""
    lines = LIST.read_text(encoding="utf-8").splitlines()[1:]
    pairs = (line.split(" ", 1) for line in lines)
    return {name: float(seconds) for seconds, name in pairs}


def is_wide(name: str, row: int, seconds: dict[str, float]) -> bool:
    """Whether a test, row `row` of its table, is left to the wide run.

    >>> [k for k in range(12) if not is_wide(f"t[{k}]", k, {"t": 0.32})]
    [0, 2, 5, 10]
    """
    table = name.partition("[")[0]
    if name in seconds:
        return seconds[name] > (LONGEST_WHOLE if name.startswith(WHOLE) else LONGEST_ROW if table != name else LONGEST)
    return table in seconds and row * GOLDEN % 1.0 >= LONGEST_TABLE / seconds[table]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write down what a test takes."""
    started = _processor_time()
    yield
    MEASURED.mkdir(parents=True, exist_ok=True)
    with (MEASURED / f"{os.getpid()}.txt").open("a", encoding="utf-8") as file:
        print(f"{_processor_time() - started:.4f} {item.nodeid}", file=file)


def _processor_time() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _lines(measured: dict[str, float]) -> list[str]:
    """Return the lines of the list, in the order of names."""
    tables = defaultdict[str, dict[str, float]](dict)
    for name, seconds in measured.items():
        tables[name.partition("[")[0]][name] = seconds
    found: dict[str, float] = {}
    for table, rows in tables.items():
        kept = {name: seconds for name, seconds in rows.items() if not is_wide(name, 0, {name: seconds})}
        found |= {name: seconds for name, seconds in rows.items() if name not in kept}
        if len(rows) > 1 and sum(kept.values()) > LONGEST_TABLE and not table.startswith(WHOLE):
            found[table] = sum(kept.values())
    return [f"{seconds:.1f} {name}" for name, seconds in sorted(found.items())]


def main() -> None:
    """Write the list from what was measured."""
    files = sorted(MEASURED.glob("*.txt"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    pairs = (line.split(" ", 1) for line in lines)
    measured = {name: float(seconds) for seconds, name in pairs if name.startswith("tests/")}  # examples all run
    LIST.write_text(_HEAD + "".join(f"{line}\n" for line in _lines(measured)), encoding="utf-8")


if __name__ == "__main__":
    main()
