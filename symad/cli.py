"""The command line: `symad hessian file.py:function`, `symad expand "sin(x)*y"`, and what else `symad -h` lists."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from codegen.visible import visible
from symad.commands import cache, export, hessian, pages
from symad.errors import WorkbenchError
from symad.limits import time_limit
from symad.tracing.calling.tracebacks import VARIABLE
from symad.tracing.calling.user_place import is_defect, is_library, is_standard

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
        if os.environ.get(VARIABLE) == "full" or is_defect(error):
            raise  # of a defect of symad the traceback is wanted
        print("\n".join(_user_lines(error)), file=sys.stderr)
    except KeyboardInterrupt:
        print("symad: interrupted", file=sys.stderr)
    return 2


def _user_lines(error: Exception) -> list[str]:
    """Return what an error of the user's own code says: the innermost line of it first, then those that led there."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not is_library(each.filename)]
    users = [each for each in frames if not is_standard(each.filename)]
    if not users:
        return [f"symad: error: {type(error).__name__}: {error}"]
    last = users.pop()
    lines = [f"symad: error: {last.filename}:{last.lineno}: {type(error).__name__}: {error}"]
    lines += [f"  called at {each.filename}:{each.lineno}, in {each.name}: {each.line}" for each in reversed(users)]
    return lines if len(lines) == 1 else [*lines, f"  ({VARIABLE}=full shows the lines of symad's too)"]


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
