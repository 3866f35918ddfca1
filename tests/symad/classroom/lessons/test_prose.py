"""Every equality in the prose of the lessons holds: it is evaluated by arithmetic that shares no code with symad.

What only gives a name, or asks, stands in NAMED. A formula that is neither named nor evaluated fails the first test.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from symad.classroom.lessons.lesson_cells import cells_of, folder
from tests.support import prose_values as prose

CUBIC = prose.implicit(lambda x, y: y**3 + y - x, 2.0, 1.2)
COSINE = prose.implicit(lambda x, y: y - np.cos(x * y), 1.0, 0.7)
SQUARE = prose.implicit(lambda x, y: y**2 - x, 2.0, 1.3)
MATRICES, SOLVED = prose.matrices(), prose.solved()

EVALUATED: dict[str, dict[str, Any]] = {
    r"\varepsilon^2 = 0": prose.DUAL,
    r"(a + b\,\varepsilon)(c + d\,\varepsilon) = ac + (ad + bc)\,\varepsilon": prose.DUAL,
    r"3 \cdot 4 + 1 = 13": {},
    r"f(x + h) = f(x) + f'(x)\,h + \tfrac12 f''(x)\,h^2 + \dots": prose.DUAL,
    r"f(x + v\,\varepsilon) = f(x) + f'(x)\,v\,\varepsilon": prose.DUAL,
    r"\varepsilon_1^2 = \varepsilon_2^2 = 0": prose.DUAL,
    r"(\varepsilon_1 + \varepsilon_2)^2 = 2\,\varepsilon_1\varepsilon_2": prose.DUAL,
    r"x + y = 2 + 2\varepsilon": prose.CONFUSED,
    r"x \cdot 2xy = 2x^3": {"x": 1.3, "y": 1.3},
    r"\dot a = \cos(x)\,\dot x": prose.reverse(),
    r"\dot b = x\,\dot a + a\,\dot x": prose.reverse(),
    r"\bar a = x\,\bar b": prose.reverse(),
    r"\bar x = a\,\bar b + \cos(x)\,\bar a": prose.reverse(),
    r"\langle w, Jv \rangle = \langle J^{\mathsf T} w, v \rangle":
        {"w": MATRICES["X"][:, :1], "J": MATRICES["U"], "v": MATRICES["Y"][:, :1], "inner": MATRICES["inner"]},
    r"e_{k+1} = \sin(e_k)\,e_k": prose.storeys(),
    r"e_{k+1}' = (\cos(e_k)\,e_k + \sin(e_k))\,e_k'": prose.storeys(),
    r"g_x + g_y\,y' = 0": CUBIC,
    r"y' = -g_x / g_y": CUBIC,
    r"y^3 + y = x": CUBIC,
    r"y = 1": CUBIC,
    r"y' = 1/(3y^2 + 1) = 1/4": CUBIC,
    r"g = y - \phi = 0": {"g": COSINE["g"], "y": COSINE["y"], "phi": np.cos(COSINE["y"])},
    r"y = \phi(x, y)": COSINE,
    r"y' = \phi_x / (1 - \phi_y)": COSINE,
    r"y = \cos(xy)": COSINE,
    r"y = \sqrt{x}": SQUARE,
    r"y^2 = x": SQUARE,
    r"2y\,y' = 1": SQUARE,
    r"A A^{-1} = I": MATRICES,
    r"\mathrm{d}(AX) = \mathrm{d}A\,X + A\,\mathrm{d}X": MATRICES,
    r"\langle \bar Y, A\,\mathrm{d}X \rangle = \langle A^T \bar Y, \mathrm{d}X \rangle": MATRICES,
    r"\bar X = A^T \bar Y": MATRICES,
    r"\bar A = \bar Y X^T": MATRICES,
    r"\bar Z = 2(HV - Y)": MATRICES,
    r"\bar V = H^T \bar Z": MATRICES,
    r"\bar H = \bar Z V^T": MATRICES,
    r"\mathrm{d}A\,A^{-1} + A\,\mathrm{d}(A^{-1}) = 0": MATRICES,
    r"\mathrm{d}(A^{-1}) = -A^{-1}\,\mathrm{d}A\,A^{-1}": MATRICES,
    r"Ax = b": SOLVED,
    r"A\,\mathrm{d}x = \mathrm{d}b - \mathrm{d}A\,x": SOLVED,
    r"A^T \bar b = \bar x": SOLVED,
    r"\bar A = -\bar b\,x^T": SOLVED,
    r"\mathrm{d} \log \det A = \mathrm{tr}(A^{-1}\,\mathrm{d}A)": MATRICES,
    r"A = L L^T": MATRICES,
    r"\mathrm{d}A = \mathrm{d}L\,L^T + L\,\mathrm{d}L^T": MATRICES,
    r"S = L^{-1}\,\mathrm{d}A\,L^{-T}": MATRICES,
    r"\mathrm{d}L = L\,\Phi(S)": MATRICES,
}  # fmt: skip
NAMED = {
    r"f(x) = x^3 + x", r"h = v\,\varepsilon", r"f(x) = x^3", r"x = 2, y = 5", r"x = 1 + \varepsilon",
    r"y = 1 + \varepsilon", r"y = x", r"u = 3", r"x = y = 1", r"f(x) = \sin(x)\,x", r"a = \sin x", r"b = a\,x",
    r"\bar b = 1", r"a = x^2", r"b = a + a\,x", r"f(x, y) = x^2 y", r"e_0 = x", r"s = x^2", r"g(x, y(x)) = 0", r"x = 2",
    r"x = 1", r"x = 0", r"\nabla_y f(x, y) = 0", r"e^y = 1 + x^2", r"g = y^3 + y - x", r"x = 2 + \varepsilon",
    r"y = 1 + \tfrac12\varepsilon", r"f(U, V) = \lVert \tanh(XU)\,V - Y \rVert^2",
    r"\frac{d}{dx}\left[x \cdot \frac{d}{dy} \sin(xy)\right]_{y=2}",
    r"\frac{d}{dx}\left[x \cdot \frac{d}{dy}(x y^2)\right]_{y = x}",
    r"\frac{d}{dx}\left[\frac{d}{dy}\, y\,(x - y)\right]_{y = x}",
}  # fmt: skip


def equalities() -> set[str]:
    """Return the equalities in the prose of all lessons."""
    cells = [cell for path in sorted(folder().glob("[0-9]*.py")) for cell in cells_of(path) if cell.prose]
    formulas = [formula for cell in cells for formula in re.findall(r"\$([^$]+)\$", cell.text)]
    return {formula.replace("\n", " ") for formula in formulas if "=" in formula}


def test_every_equality_in_the_prose_is_evaluated_or_gives_a_name() -> None:
    assert equalities() == EVALUATED.keys() | NAMED


@pytest.mark.parametrize("latex", EVALUATED)
def test_an_equality_in_the_prose_holds(latex: str) -> None:
    assert prose.differs(latex, EVALUATED[latex]) < 1e-8


FALSE = {
    r"\bar A = \bar Y X^T": r"\bar A = X^T \bar Y",
    r"y' = -g_x / g_y": r"y' = g_x / g_y",
    r"\dot b = x\,\dot a + a\,\dot x": r"\dot b = \dot a\,\dot x",
}


@pytest.mark.parametrize(("latex", "false"), FALSE.items())
def test_a_false_equality_is_found(latex: str, false: str) -> None:
    assert prose.differs(false, EVALUATED[latex]) > 1e-3
