"""The command line: `symad hessian file.py:function`, `symad expand "sin(x)*y"`; `symad -h` lists all commands."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from codegen.visible import visible
from symad.commands.names import DESCRIPTIONS, EXAMPLES, HELP, MODULES, STATUS
from symad.version import __version__

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status, which `symad --help` lists.

    Only the module of the command that is asked for is imported: help and version come without SymPy.

    >>> main(["hessian", "nowhere.py:f"])
    2
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser(next((argument for argument in given if not argument.startswith("-")), ""))
    options, others = parser.parse_known_args(given, argparse.Namespace(parser=parser))
    if others:
        parser.commands.choices[options.command].error(f"unrecognized arguments: {' '.join(others)}")
    status: int = import_module("symad.commands.running").carried_out(options)
    return status


class _Formatter(argparse.HelpFormatter):
    """Help in which examples and lists keep their lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors show the typed text and suggest the closest name."""

    commands: Any = None

    def error(self, message: str) -> NoReturn:
        super().error(visible(message + self._meant(message)))

    def _meant(self, message: str) -> str:
        match = _CHOICE.search(message)
        if match:
            return _near(match[1], re.findall(r"[\w-]+", match[2]))
        if not message.startswith("unrecognized arguments: "):
            return ""
        first = message.split(": ", 1)[1].split(" ")[0].partition("=")[0]
        if not first.startswith("-"):
            return "; names and numbers belong to an option, and a formula with blanks in quotes"
        return _near(first, {name for action in self._actions for name in action.option_strings})


def _near(typed: str, known: Iterable[str]) -> str:
    """Return a question for the nearest word, "" where none is near.

    >>> _near("hesian", ["hessian", "expand"]), _near("nothing", ["hessian"])
    ("; did you mean 'hessian'?", '')
    """
    near = difflib.get_close_matches(typed, sorted(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _parser(chosen: str) -> _Parser:
    """Return the parser; of commands that are not chosen it knows the names, unless their options are asked for."""
    parser = _Parser(
        prog="symad", description="Nested automatic differentiation on computer algebra, compiled.", allow_abbrev=False,
        epilog=f"{STATUS}\n\nsymad COMMAND --help has examples of each.", formatter_class=_Formatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"symad {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parser.commands = commands
    for name, what in HELP.items():
        described = DESCRIPTIONS.get(name, f"{what.capitalize()}.")
        command = commands.add_parser(name, help=what, description=described, formatter_class=_Formatter)
        if chosen in (name, "completion"):
            module = import_module(f"symad.commands.{MODULES.get(name, name)}")
            command.epilog = "\n  ".join(["examples:", *EXAMPLES[name]])
            command.set_defaults(run=getattr(module, f"run_{name}"), max_seconds=300.0)
            getattr(module, f"declare_{name}")(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
