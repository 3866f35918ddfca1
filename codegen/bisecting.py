"""Find the optional pass that breaks a number: leave out passes from the end until the number is right.

    python -m codegen.bisecting FILE.py

runs a file again and again, which has to fail (an exception, or an exit code other than 0) where the number is wrong.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from codegen.errors import ArgumentError, WorkbenchError
from codegen.stages import LOG, Bisection, bisecting

USAGE = "usage: python -m codegen.bisecting FILE.py"


def first_wrong(check: Callable[[], bool]) -> str:
    """Return the name of the optional pass that makes `check()` false, where it is true without it.

    `check` compiles what is to be compiled, and says whether its numbers are right; the passes of all that it compiles
    are counted together. ArgumentError where no pass is to blame: `check()` is true with all of them, or false with
    none.

    >>> import sympy as sp
    >>> from codegen import compile_program, program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> first_wrong(lambda: compile_program(program_from_sympy([x, y], [x * y + 1])).stats.fused == 0)
    'multiply-add'
    """
    right, ran = _tried(check, float("inf"))
    if right:
        raise ArgumentError("check()", why="it is true with all optional passes", do="give one that is false")
    names, good, bad = ran, 0, len(ran)
    if not _tried(check, 0)[0]:
        raise ArgumentError(
            "check()",
            why="it is false without any optional pass too, so none of them is to blame",
            do="look at the check, or at the dump of the stages (SYMAD_DUMP)",
        )
    while bad - good > 1:
        middle = (good + bad) // 2
        right, ran = _tried(check, middle)
        if right:
            good = middle
        else:
            names, bad = ran, middle
    LOG.info("the number is wrong from optional pass %d on, %s", bad, names[-1])
    return names[-1]


def _tried(check: Callable[[], bool], limit: float) -> tuple[bool, list[str]]:
    """Return what a check says with so many passes, and their names."""
    bisection = Bisection(limit)
    with bisecting(bisection):
        return bool(check()), bisection.ran


def passes(path: Path) -> bool:
    """Run a file as a program; whether it ends without an exception and with exit code 0."""
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return end.code in (None, 0)
    except Exception as error:
        LOG.debug("%s: %s: %s", path, type(error).__name__, error)
        return False
    return True


def main(arguments: Sequence[str]) -> int:
    """Print the pass that breaks a file; 2 where there is no such pass, or no such file."""
    if len(arguments) != 1 or not Path(arguments[0]).is_file():
        print(USAGE, file=sys.stderr)
        return 2
    try:
        print(first_wrong(lambda: passes(Path(arguments[0]))))
    except WorkbenchError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
