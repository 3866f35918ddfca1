"""Whole derivations as text, written by hand: what stands in the terminal."""

from __future__ import annotations

from typing import Any

import pytest

import symad as sa

TEXTS: list[tuple[Any, Any, dict[str, Any], str]] = [
    ("3x^2 + 5x - 7", "x", {}, """
f(x) = 3x² + 5x - 7
d/dx[3x² + 5x - 7] = 6x + 5    [power rule]
f′(x) = 6x + 5"""),
    ("x sin x", "x", {}, """
f(x) = x·sin(x)
d/dx[x·sin(x)] = d/dx[x]·sin(x) + x·d/dx[sin(x)]    [product rule: u = x, v = sin(x)]
= sin(x) + x·cos(x)    [sine]
f′(x) = sin(x) + x·cos(x)"""),
    ("x/(x^2 + 1)", "x", {}, """
f(x) = x/(x² + 1)
d/dx[x/(x² + 1)] = (d/dx[x]·(x² + 1) - x·d/dx[x² + 1])/(x² + 1)²    [quotient rule: u = x, v = x² + 1]
= (x² + 1 - x·2x)/(x² + 1)²    [power rule]
= (1 - x²)/(x² + 1)²    [simplified]
f′(x) = (1 - x²)/(x² + 1)²"""),
    ("sqrt(x^2 + 1)", "x", {}, """
f(x) = √(x² + 1)
d/dx[√(x² + 1)] = 2x/(2·√(x² + 1))    [chain rule: outer √u, inner u = x² + 1]
= x/√(x² + 1)    [simplified]
f′(x) = x/√(x² + 1)"""),
    ("1/(x^2 + 1)", "x", {}, """
f(x) = 1/(x² + 1)
d/dx[1/(x² + 1)] = -d/dx[x² + 1]/(x² + 1)²    [reciprocal rule: (1/u)′ = -u′/u² with u = x² + 1]
= -2x/(x² + 1)²    [power rule]
f′(x) = -2x/(x² + 1)²"""),
    ("e^(sin(x^2))", "x", {}, """
f(x) = e^(sin(x²))
d/dx[e^(sin(x²))] = e^(sin(x²))·d/dx[sin(x²)]    [chain rule: outer e^u, inner u = sin(x²)]
= e^(sin(x²))·cos(x²)·2x    [chain rule: outer sin(u), inner u = x²]
f′(x) = 2x·e^(sin(x²))·cos(x²)"""),
    ("x^x", "x", {}, """
f(x) = x^x
d/dx[x^x] = d/dx[e^(x·ln(x))]    [power as an exponential: x^x = e^(x·ln(x)); for x > 0]
= e^(x·ln(x))·d/dx[x·ln(x)]    [chain rule: outer e^u, inner u = x·ln(x)]
= e^(x·ln(x))·(d/dx[x]·ln(x) + x·d/dx[ln(x)])    [product rule: u = x, v = ln(x)]
= e^(x·ln(x))·(ln(x) + x/x)    [natural logarithm]
= x^x·(ln(x) + 1)    [simplified]
f′(x) = x^x·(ln(x) + 1)"""),
    ("|x - 1|", "x", {"at": 1}, """
f(x) = |x - 1|
d/dx[|x - 1|] = sign(x - 1)    [chain rule: outer |u|, inner u = x - 1; for x ≠ 1]
f′(x) = sign(x - 1)
f′(1) does not exist: the slope is -1 on the left and 1 on the right"""),
    ("x^2 sin(3x)", "x", {"detail": "full"}, """
f(x) = x²·sin(3x)
d/dx[x²·sin(3x)] = d/dx[x²]·sin(3x) + x²·d/dx[sin(3x)]    [product rule: u = x², v = sin(3x)]
= 2x·sin(3x) + x²·d/dx[sin(3x)]    [power rule]
= 2x·sin(3x) + x²·cos(3x)·d/dx[3x]    [chain rule: outer sin(u), inner u = 3x]
= 2x·sin(3x) + x²·cos(3x)·3·d/dx[x]    [constant factor]
= 2x·sin(3x) + x²·cos(3x)·3    [identity]
= 2x·sin(3x) + 3x²·cos(3x)    [simplified]
= x·(3x·cos(3x) + 2sin(3x))    [common factors]
f′(x) = x·(3x·cos(3x) + 2sin(3x))"""),
    ("x e^x", "x", {"order": 2}, """
f(x) = x·e^x
First derivative
d/dx[x·e^x] = d/dx[x]·e^x + x·d/dx[e^x]    [product rule: u = x, v = e^x]
= e^x + x·e^x    [exponential function]
= e^x·(x + 1)    [common factors]
f′(x) = e^x·(x + 1)
Second derivative
d/dx[e^x·(x + 1)] = d/dx[e^x]·(x + 1) + e^x·d/dx[x + 1]    [product rule: u = e^x, v = x + 1]
= e^x·(x + 1) + e^x    [exponential function]
= e^x·(x + 2)    [common factors]
f′′(x) = e^x·(x + 2)"""),
    ("x^2 + y^2 = 25", "x", {"at": (3, 4), "order": 2}, """
x² + y² = 25    [y depends on x]
Left side
d/dx[x² + y²] = 2x + 2y·y′    [power rule; chain rule: outer u², inner u = y]
Right side
d/dx[25] = 0    [constant rule]
Solve for y′
2x + 2y·y′ = 0    [both sides have equal derivatives]
2y·y′ = -2x    [solved for y′]
y′ = -x/y
Second derivative
d/dx[-x/y] = -(d/dx[x]·y - x·d/dx[y])/y²    [quotient rule: u = x, v = y]
= -(y - x·y′)/y²    [derivative of y]
= -(y - x·(-x/y))/y²    [put in y′]
= -(x²/y + y)/y²    [simplified]
= -(x² + y²)/y³    [simplified]
y′′ = -(x² + y²)/y³
y′′ = -25/y³    [by the equation of the curve]
At x = 3, y = 4: y′′ = -25/64"""),
    ("x^2 y", ["x", "y"], {}, """
f(x, y) = x²·y
f_x
∂/∂x[x²·y] = 2x·y    [power rule]
f_x = 2x·y
f_y
∂/∂y[x²·y] = x²    [constant factor]
f_y = x²
Gradient
∇f = (2x·y, x²)"""),
    (("t - sin t", "1 - cos t"), "t", {}, """
x(t) = t - sin(t)
y(t) = 1 - cos(t)
x(t)
d/dt[t - sin(t)] = 1 - cos(t)    [sine]
y(t)
d/dt[1 - cos(t)] = sin(t)    [cosine]
Slope
d/dt[1 - cos(t)]/d/dt[t - sin(t)] = sin(t)/(1 - cos(t))    [the slope of y divided by that of x]
dy/dx = sin(t)/(1 - cos(t))"""),
    ("(x - 1)^2 (x + 2)^3 (x + 5)^4", "x", {}, """
f(x) = (x - 1)²·(x + 2)³·(x + 5)⁴
d/dx[(x - 1)²·(x + 2)³·(x + 5)⁴] = (x - 1)²·(x + 2)³·(x + 5)⁴·d/dx[2ln(|x - 1|) + 3ln(|x + 2|) + 4ln(|x + 5|)]    \
[logarithmic differentiation: y′ = y·(ln|y|)′ with y = (x - 1)²·(x + 2)³·(x + 5)⁴; for y ≠ 0]
= (x - 1)²·(x + 2)³·(x + 5)⁴·(2/(x - 1) + 3/(x + 2) + 4/(x + 5))    [chain rule]
= 3·(x - 1)·(x + 2)²·(x + 5)³·(3x² + 10x - 1)    [factored]
f′(x) = 3·(x - 1)·(x + 2)²·(x + 5)³·(3x² + 10x - 1)"""),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x", "options", "expected"), TEXTS)
def test_text(f: Any, x: Any, options: dict[str, Any], expected: str) -> None:
    lines = [line.strip() for line in sa.steps(f, x, **options).text(400).splitlines() if line]
    assert lines == ["Derivative, step by step", *expected.strip().splitlines()]
