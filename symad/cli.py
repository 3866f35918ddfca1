"""The command line: `symad hessian file.py:function`, `symad expand "sin(x)*y"`, and what else `symad -h` lists."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from codegen.visible import visible
from symad.commands import cache, export, hessian, pages
from symad.errors import WorkbenchError
from symad.limits import time_limit

COMMANDS = (
    hessian.add_command,
    pages.add_expand_and_check,
    pages.add_explain_and_draw,
    pages.add_compare_and_verify,
    export.add_command,
    cache.add_command,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; exit status 0, or 2 with a one-line error on standard error.

    >>> main(["hessian", "nowhere.py:f"])
    2
    """
    options = _parser().parse_args(arguments)
    try:
        with time_limit(options.max_seconds, f"symad {options.command}"):
            status: int = options.run(options)
            sys.stdout.flush()
            return status
    except WorkbenchError as error:
        print(f"symad: error: {error}", file=sys.stderr)
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        place = _user_place(error)
        if place is None:
            raise  # a defect of symad: the traceback is wanted
        print(f"symad: error: {place}: {type(error).__name__}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("symad: interrupted", file=sys.stderr)
    return 2


def _user_place(error: Exception) -> str | None:
    """Return file:line when an exception was raised by the user's code, None when by symad itself."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    inside = Path(frame.filename).is_relative_to(Path(__file__).parent)
    return None if inside else f"{frame.filename}:{frame.lineno}"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors show what was typed so that it can be read."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="symad", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add_command in COMMANDS:
        add_command(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
