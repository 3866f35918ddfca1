"""Mutated text at every door that takes text: formulas, names, numbers, options, file names, answers.

Whatever is typed, what comes is a result whose HTML and LaTeX are well-formed, or an error of ours; nothing typed
reaches a page, a terminal or a file name as it is.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import sympy as sp

import symad as sa
from symad import cli
from symad.classroom.formulas.read import read_formula
from symad.display.shown import Shown
from symad.errors import NotationWarning
from tests.support.campaigns import CONTROL
from tests.support.display_checks import HOSTILE, balanced, parsed

FORMULAS = [
    "x^3 sin(x)", "2(x+1)(x-1)", "1/2 x", "e^-x^2", "3x^2 v eps_1 + 6x v w ε₁ε₂", "f''(x)v²/2", "sin^2(x) + cos(x)²",
    "sqrt(1 + x^2)", "ln(x) abs(x)", "exp(x sin(x))", "x**-2 + x⁻¹", "max(x, v, 1)", "atan2(x, v)", "0.1 x - 1e-3",
    "(x + eps1 v)^3", "x y z", "gamma(x)/polygamma(1, x)", "f^(4)(x) v", "log1p(x) expit(x)", "tan''(x)",
    "2 sin x cos x", "sin^2 2x", "\\frac{d}{dx} \\sin\\left(x^{2}\\right)", "\\frac{x}{1+x^2} + \\sqrt[3]{x}",
    "|x| + x/|x|", "sgn x", "½x² + √(1+x²)", "d/dx (x^2) + (x^3)'", "3,5x^2,5", "log_2 x + 5!",
    "g(h(x)) + g'(h(x)) h'(x)", "f(x) = x^3.",
    "x^2 + 2x v \\varepsilon_1 + O(ε²)", "y' = 3x^2 (power rule)", "dy/dx = 3x²", "D f = (x^3)'", "eˣ xⁿ", "$\\ln |x|$",
]  # fmt: skip
WORDS = [
    *HOSTILE, "(", ")", "[", "]", ",", "'", "^", "**", "²", "⁻¹", "ε₁", "eps_", "1e999", "1e-999", "9" * 400, "0x1p3",
    "factorial", "gamma", "9!", "^9^9^9", "(" * 300, "x(" * 200, "-" * 500, "1/0", "0^0", "inf", "nan", "I",
    "__class__", "lambda x: x", "x.is_real", "import os", "√", "½", "∞", "∂₁", "\u0301", "x\u200b", "é", "Ｘ", "١٢",
    "\ufeff", "\x7f", "\r\n", "\t", "#", "//", "O(x^2)", "d/dx", "Matrix", "x_{1}", "x__", "==", ":=", "%",
    "polygamma(99, x)", "LambertW(x)",
    "\\frac{", "\\frac", "\\sqrt[", "\\left(", "\\right|", "\\text{", "\\mathrm{", "{", "}", "$", "&", "\\\\",
    "|", "||", "'", "''", "d/dx",
    "sin ", "ln", "log_", "e1", "2e1", "½", "∛", "(by the rule)", "+ O(", "^{(4)}", "^{\\prime}", "_{1}",
    ",5", "∂/∂x ", "!", "!!",
]  # fmt: skip
OPTIONS = [
    "--at", "--variables", "--functions", "--directions", "--order", "--detail", "--transform", "--box", "--points",
    "--seed", "--rigorous", "--max-seconds", "--answer", "--loops", "--help", "-x", "--", "--plots", "--emit",
]  # fmt: skip
COMMANDS = ["expand", "check", "explain", "draw", "verify", "hessian", "export", "cache", "nothing"]


def mutated(source: Random, text: str) -> str:
    """Return a text with a few edits: cut, repeated, with words put in, with a part of another text.

    >>> mutated(Random(1), "x^3 sin(x)") == mutated(Random(1), "x^3 sin(x)")
    True
    """
    for _ in range(source.randrange(4)):
        first, last = sorted(source.choices(range(len(text) + 1), k=2))
        other = source.choice(FORMULAS)
        text = source.choice(
            [
                text[:first] + text[last:],
                text[:last] + text[first:],
                text[:first] + source.choice(WORDS) + text[first:],
                text[:first] + source.choice(WORDS) + text[last:],
                text[:first] + other[source.randrange(len(other)) :],
            ]
        )
    return text[:20_000]


def _name(source: Random) -> str:
    return source.choice(["x", "y", "v", "eps_1", mutated(source, "x"), source.choice(WORDS)])


def _read(source: Random, text: str) -> Any:
    names: list[Any] = [sp.Symbol(name) for name in ("x", "v", "w", "y", "eps_1", "eps_2")]
    if source.random() < 0.2:
        names.append(sp.Symbol(_name(source)))
    return read_formula(text, [*names, sp.Function("f")])


def _derivative(source: Random, text: str) -> Any:
    return sa.check_derivative(text, "x^3", "x")


def _function(source: Random, text: str) -> Any:
    return sa.check_derivative("3x^2\n6x", text, _name(source), order=source.choice([1, 2]))


def _expansion(source: Random, text: str) -> Any:
    return sa.check_expansion(text, "x^3", "x", ["v", "w"])


def _expand(source: Random, text: str) -> Any:
    return sa.expand(text, _name(source), [_name(source)], order=source.choice([None, 1, 2]))


DOORS: dict[str, Callable[[Random, str], Any]] = {
    "read": _read, "check_derivative": _derivative, "of": _function, "check_expansion": _expansion, "expand": _expand,
}  # fmt: skip


def tries(seed: int) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield texts and what is done with them, without end; the command line every eighth time."""
    source, doors = Random(seed), list(DOORS)
    number = 0
    while True:
        number += 1
        text = mutated(source, source.choice(FORMULAS))
        state = source.getrandbits(64)
        if number % 8 == 0:
            words = command_line(source, text)
            yield f"symad {words!r}", lambda words=words: _command(words)
            continue
        door = doors[number % len(doors)]
        yield f"{door}: {text!r}", lambda door=door, text=text, state=state: _opened(door, state, text)


def _opened(door: str, state: int, text: str) -> str:
    """Take a text through a door and check what comes of it; what is taken for granted in reading is told elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotationWarning)
        return _shown(DOORS[door](Random(state), text))


def _shown(found: Any) -> str:
    """Check every form of a result for people."""
    assert found is not None
    if not isinstance(found, Shown):
        return "read"
    page = found.html()
    parsed(page)
    assert not re.search(r"<script|<img|javascript:", page, re.IGNORECASE), "what was typed is part of the page"
    assert balanced(found.latex())
    assert not CONTROL.search(found.text(100)), "control characters reach the terminal"
    return "shown"


def command_line(source: Random, text: str) -> list[str]:
    """Return the words of a command line: a command, a formula, options in any order with any values."""
    words = [source.choice(COMMANDS), text]
    for _ in range(source.randrange(4)):
        words.append(source.choice(OPTIONS))
        at = f"{_name(source)}={source.choice(['1', 'nan', '²'])}"
        value = source.choice([_name(source), "1", "-1", "1e400", at])
        words += [value] * source.randrange(3)
    if source.random() < 0.3:
        words += ["--max-seconds", source.choice(["1", "0", "-1", "nan", "x"])]
    return words


def _command(words: list[str]) -> str:
    """Run a command line in a folder of its own: it prints, or says in words what is wrong, with a status of 1 to 3."""
    out, error = io.StringIO(), io.StringIO()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        os.chdir(folder)
        try:
            status: Any = cli.main(words)
        except SystemExit as ended:  # argparse
            status = ended.code
        finally:
            os.chdir(before)
        written = [path.name for path in Path(folder).iterdir()]
    assert status in (0, 1, 2, 3), status
    assert not written, f"files were written that nobody asked for: {written}"
    assert status < 2 or "error" in error.getvalue() or "usage" in error.getvalue(), error.getvalue()
    assert "Traceback" not in error.getvalue(), error.getvalue()
    assert not CONTROL.search(out.getvalue() + error.getvalue()), "control characters are printed"
    return f"exit status {status}"
