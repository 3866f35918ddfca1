"""`symad completion`: what makes bash, zsh or fish complete commands, their options and the values of these."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from symad.commands.names import HELP

Parsers = Mapping[str, argparse.ArgumentParser]


def add_command(commands: Any) -> None:
    """Declare the command and its options."""
    what = HELP["completion"]
    command = commands.add_parser("completion", help=what, description=f"{what.capitalize()}.")
    command.add_argument("shell", choices=tuple(SHELLS))
    command.set_defaults(run=lambda options: run(options, commands.choices), max_seconds=300.0)


def run(options: argparse.Namespace, parsers: Parsers) -> int:
    """Carry out the command; exit status 0."""
    print(SHELLS[options.shell](parsers))
    return 0


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[str], str]]:
    """Yield the long options of a command, the values that one may have, and what it is for."""
    for action in parser._actions:
        for name in action.option_strings:
            if name.startswith("--"):
                yield name, [str(value) for value in action.choices or ()], action.help or ""


def bash(parsers: Parsers) -> str:
    """Return what bash reads."""
    cases = []
    for command, parser in parsers.items():
        found = list(_options(parser))
        cases += [f"    '{command} {name}') words='{' '.join(values)}' ;;" for name, values, _ in found if values]
        cases.append(f"    '{command} '*) words='{' '.join(name for name, _, _ in found)}' ;;")
    return "\n".join(
        [
            "_symad() {",
            "  local word=\"${COMP_WORDS[COMP_CWORD]}\" words=''",
            f"  if [ \"$COMP_CWORD\" -eq 1 ]; then words='{' '.join(parsers)} --help --version'",
            '  else case "${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]}" in',
            *cases,
            "  esac; fi",
            '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
            "}",
            "complete -o default -F _symad symad",
        ]
    )


def zsh(parsers: Parsers) -> str:
    """Return what zsh reads, as a file `_symad` in a folder of `fpath`."""
    cases = []
    for command, parser in parsers.items():
        found = list(_options(parser))
        cases += [
            f"    '{command} {name}') compadd -- {' '.join(values)}; return ;;" for name, values, _ in found if values
        ]
        cases.append(f"    '{command} '*) compadd -- {' '.join(name for name, _, _ in found)} ;;")
    return "\n".join(
        [
            "#compdef symad",
            "if (( CURRENT == 2 )); then",
            "  local -a commands=(",
            *[f"    '{command}:{_plain(HELP[command])}'" for command in parsers],
            "  )",
            "  _describe command commands; compadd -- --help --version",
            "else",
            '  case "$words[2] $words[CURRENT-1]" in',
            *cases,
            "  esac",
            "  _files",
            "fi",
        ]
    )


def fish(parsers: Parsers) -> str:
    """Return what fish reads."""
    lines = []
    for command, parser in parsers.items():
        lines.append(f"complete -c symad -n __fish_use_subcommand -a {command} -d '{_plain(HELP[command])}'")
        for name, values, what in _options(parser):
            chosen = f" -x -a '{' '.join(values)}'" if values else ""
            seen = f"'__fish_seen_subcommand_from {command}'"
            lines.append(f"complete -c symad -n {seen} -l {name[2:]}{chosen} -d '{_plain(what)}'")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Return text without what ends a quotation or a description."""
    return text.replace("'", "").replace(":", ",")


SHELLS: dict[str, Callable[[Parsers], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
