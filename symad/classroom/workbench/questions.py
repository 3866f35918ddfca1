"""A question from the page: function, point and transform; and everything that is computed for it, once."""

from __future__ import annotations

import math
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen import Kernel
from codegen.records import dataclass
from symad.classroom.explanation.explain import explain
from symad.classroom.explanation.explanation_document import Explanation
from symad.classroom.formulas.given import given
from symad.classroom.formulas.targets import formula_at, load_function, number_of, of_first_argument
from symad.classroom.verification.balls import flat_floats
from symad.classroom.workbench.links import Links
from symad.classroom.workbench.titles import HIGHEST_ORDER, LONGEST_TEXT, TITLES
from symad.compiling.native import carry_out
from symad.compiling.planning import plan
from symad.errors import ArgumentError
from symad.transforms.first_order import derivative, grad, hessian, jacfwd, jacrev, jvp
from symad.transforms.higher_order import laplacian

FIRST_POINT, POINT_STEP = 0.7, 0.4  # the default point: the first variable, and the step to each further one
_PYTHON = re.compile(r"^\s*(def|import|from|lambda|class|exec|eval|print|__\w+__)\b")
_LAST_FUNCTION = re.compile(r"^def\s+(\w+)", re.MULTILINE)

Function = Callable[..., Any]


@dataclass(frozen=True)
class Question:
    """The input of the page: a formula, a function of the opened file, or code; the point; the transform.

    `low` and `high` are the ends of the range of measured errors, "" for a range around the point.
    """

    kind: str = "formula"
    text: str = ""
    point: str = ""
    transform: str = "grad"
    order: int = 2
    variable: int = 0
    low: str = ""
    high: str = ""
    sharing: str = "after"

    @property
    def core(self) -> Question:
        """The question without the settings of single panes."""
        return replace(self, variable=0, low="", high="", sharing="after")


def question_of(parts: Mapping[str, Any]) -> Question:
    """Return the question that a page sent; ArgumentError if it is invalid.

    >>> question_of({"text": "x^2", "transform": "hessian"}).transform
    'hessian'
    """
    known = {field.name: field.type for field in fields(Question)}
    for name, value in parts.items():
        if name not in known or type(value).__name__ != known[name]:
            raise ArgumentError(f"{str(name)[:40]!r} in a question", do=f"the parts are {', '.join(known)}")
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise ArgumentError(f"a text of {len(value)} letters", do=f"give at most {LONGEST_TEXT}")
    question = Question(**parts)
    if question.transform not in TRANSFORMS:
        raise ArgumentError(f"the transform {question.transform[:40]!r}", do=f"choose one of {', '.join(TRANSFORMS)}")
    if question.kind not in ("formula", "file", "code"):
        raise ArgumentError(f"a question about a {question.kind[:40]!r}", do="choose formula, file or code")
    if not 1 <= question.order <= HIGHEST_ORDER:
        raise ArgumentError(f"order {question.order}", do=f"choose one from 1 to {HIGHEST_ORDER}")
    return question


@dataclass(frozen=True)
class Transform:
    """A derivative: its words, its function, and the number of levels that it opens (0: the order)."""

    words: str
    take: Callable[[Function, Any, int], Function]
    levels: int


def _ones(x: Any) -> Any:
    leaves, structure = containers.flatten(x)
    return containers.unflatten(structure, [np.ones(np.shape(leaf)) if np.shape(leaf) else 1.0 for leaf in leaves])


def _gradient_of_gradient(f: Function, x: Any, order: int) -> Function:
    if np.shape(x) == () and not isinstance(x, dict | list | tuple):
        return grad(grad(f))
    return grad(lambda z: _along(grad(f)(z), _ones(x)))


def _along(gradient: Any, direction: Any) -> Any:
    """Return the product of a gradient and a direction."""
    pairs = zip(containers.flatten(gradient)[0], containers.flatten(direction)[0], strict=True)
    return sum(np.sum(part * along) for part, along in pairs)


TRANSFORMS: dict[str, Transform] = {
    "value": Transform("the value of f", lambda f, x, k: f, 1),
    "grad": Transform("the gradient, by reverse mode", lambda f, x, k: grad(f), 1),
    "derivative": Transform("the derivative of that order, by forward mode", lambda f, x, k: derivative(f, k), 0),
    "grad-grad": Transform(
        "reverse over reverse: the gradient of the gradient; of several variables, of their sum of slopes",
        _gradient_of_gradient, 2),
    "jvp-grad": Transform(
        "forward over reverse: the gradient along the direction (1, ..., 1), that is the Hessian times it",
        lambda f, x, k: lambda z: jvp(grad(f), (z,), (_ones(x),))[1], 2),
    "hessian": Transform("all second derivatives", lambda f, x, k: hessian(f), 2),
    "laplacian": Transform("the sum of the pure second derivatives", lambda f, x, k: laplacian(f), 2),
    "jacfwd": Transform("the Jacobian by forward mode", lambda f, x, k: jacfwd(f), 1),
    "jacrev": Transform("the Jacobian by reverse mode", lambda f, x, k: jacrev(f), 1),
}  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """A function of one argument, that argument as displayed and in numbers, and the expression of a formula.

    `notes` explain the readings of ambiguous notations.
    """

    name: str
    function: Function
    argument: Any
    numbers: Any
    symbols: tuple[sp.Basic, ...]
    expression: sp.Expr | None = None
    notes: tuple[str, ...] = ()

    @property
    def flat(self) -> list[float]:
        return flat_floats(self.numbers)

    def at(self, flat: list[float]) -> Any:
        """Return an argument of the same shape with other numbers."""
        leaves, structure = containers.flatten(self.numbers)
        numbers = iter(flat)
        parts = ((list(islice(numbers, math.prod(np.shape(leaf)))), np.shape(leaf)) for leaf in leaves)
        return containers.unflatten(structure, [np.reshape(part, shape) if shape else part[0] for part, shape in parts])


def subject_of(question: Question, file: str = "", allow_code: bool = False) -> Subject:
    """Return the subject of a question. `file` names the function that the workbench was started with.

    >>> subject_of(Question(text="x sin(y)", point="y=0.5")).flat
    [0.7, 0.5]
    """
    if question.kind == "formula":
        return _of_formula(question)
    if question.kind == "file":
        if not file:
            raise ArgumentError("no file was opened", do="start it as symad workbench FILE.py:FUNCTION")
        return _of_file(file)
    if not allow_code:
        do = "start the workbench with --allow-code, or type a formula"
        raise ArgumentError("Python code in the page", why="it is not run", do=do)
    return _of_code(question.text)


def _of_formula(question: Question) -> Subject:
    if _PYTHON.match(question.text):
        raise ArgumentError(
            "Python code in the place of a formula",
            why="what is typed here is read as a formula, and never run",
            do="write a formula such as exp(x sin(x)), or open a file: symad workbench FILE.py:FUNCTION",
        )
    with warnings.catch_warnings(record=True) as warned:  # of notations that are read in one of two ways
        warnings.simplefilter("always")
        expression, x = formula_at(question.text, {})
    problem = given(expression, x)
    point = point_of(question.point)
    names = [str(symbol) for symbol in problem.symbols]
    if unknown := sorted(point.keys() - set(names)):
        raise ArgumentError(f"the point has {unknown[0]}", do=f"the variables are {', '.join(names)}")
    flat = [point.get(name, round(FIRST_POINT + POINT_STEP * k, 6)) for k, name in enumerate(names)]
    numbers = flat[0] if np.shape(problem.argument) == () else np.array(flat)
    notes = tuple(dict.fromkeys(str(warning.message) for warning in warned))
    return Subject("f", problem.function, problem.argument, numbers, problem.symbols, expression, notes)


def point_of(text: str) -> dict[str, float]:
    """Return the numbers of a typed point.

    >>> point_of("x = 0.5, y = pi/4")["x"]
    0.5
    """
    numbers = {}
    for part in filter(None, map(str.strip, re.split(r"[,;]", text))):
        name, separator, value = part.partition("=")
        if not separator:
            raise ArgumentError(f"{part!r} in a point", do="write it as x=0.5, y=2")
        numbers[name.strip()] = number_of(value, name.strip())
    return numbers


def _of_file(target: str) -> Subject:
    function, numbers = of_first_argument(*load_function(target), target)
    problem = given(function, numbers)
    return Subject(problem.name, function, numbers, numbers, problem.symbols)


def _of_code(text: str) -> Subject:
    names = _LAST_FUNCTION.findall(text)
    if not names:
        raise ArgumentError("no function in the code", do="write a function such as def f(x=0.7): return np.sin(x)")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "typed.py"
        path.write_text(f"import numpy as np\n{text}\n", encoding="utf-8")
        return _of_file(f"{path}:{names[-1]}")


MOST_LEVELS = 4  # of an expansion on the page


@dataclass(frozen=True)
class Study:
    """The subject of a question and everything derived from it. Each part is computed on first use."""

    question: Question
    file: str = ""
    allow_code: bool = False

    @cached_property
    def subject(self) -> Subject:
        return subject_of(self.question, self.file, self.allow_code)

    @property
    def order(self) -> int:
        """Number of levels that the transform opens."""
        return TRANSFORMS[self.question.transform].levels or self.question.order

    @cached_property
    def transformed(self) -> Function:
        """The chosen derivative as a function."""
        subject = self.subject

        def f(argument_0: Any) -> Any:  # an automatic name: the page shows the variables instead
            return subject.function(argument_0)

        f.__name__ = subject.name
        return TRANSFORMS[self.question.transform].take(f, subject.numbers, self.question.order)

    @cached_property
    def explanation(self) -> Explanation:
        """The explanation of the derivative. Its inputs have the user's names."""
        subject = self.subject
        explanation = explain(self.transformed, subject.numbers, detail="all")
        return explanation.named(subject.symbols, f"{TITLES[self.question.transform]} of {subject.name}")

    @cached_property
    def links(self) -> Links:
        """The links between the panes."""
        return Links(self.explanation, self.subject.flat)

    @cached_property
    def kernel(self) -> Kernel:
        """The derivative compiled by LLVM, whose IR is displayed."""
        return carry_out(plan(self.transformed, self.subject.numbers), tier="llvm")

    def directions(self) -> list[Any]:
        """Return a direction for each level of the expansion: v, w, ... for each number of the argument."""
        shape = np.shape(self.subject.argument)
        taken = {str(symbol) for symbol in self.subject.symbols}
        letters = [letter for letter in "vwuzstabcd" if letter not in taken]
        straight = self.question.transform == "derivative"
        count = min(self.order, MOST_LEVELS)
        return [_direction(letters[0] if straight else letter, shape) for letter in letters[:count]]


def _direction(letter: str, shape: tuple[int, ...]) -> Any:
    if not shape:
        return sp.Symbol(letter, real=True)
    size = int(np.prod(shape))
    parts = [sp.Symbol(f"{letter}_{k}", real=True) for k in range(1, size + 1)]
    return np.array(parts, dtype=object).reshape(shape)
