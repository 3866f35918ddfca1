"""Derivatives in several forms have their digits in each range, in double precision too, where forms cancel."""

from __future__ import annotations

import math
import operator

import mpmath
import numpy as np
import pytest
import sympy as sp

import codegen.special_heads as s
import symad as sa
from codegen.evaluation.interpret import evaluate
from symad.rules.partials import edges
from symad.rules.ranged_rules import _expansion
from tests.symad.rules.test_tables import node_of, reference

POINTS = [
    (s.kve, (0.0, 50.0), 1), (s.kve, (1.5, 40.0), 1), (s.kve, (3.0, 2.0), 1),
    (s.ive, (2.0, 50.0), 1), (s.ive, (1.0, -50.0), 1), (s.ive, (2.0, -50.0), 1), (s.ive, (2.5, 3.0), 1),
    (sp.besselk, (0.0, 1.5), 1), (sp.besselk, (2.5, 1.5), 1), (sp.besselk, (-2.5, 1.5), 1), (sp.besselk, (1.0, 2.0), 1),
    (s.spence, (1.0 + 1e-9,), 0), (s.spence, (0.2,), 0), (s.spence, (3.0,), 0),
    (s.exprel, (1e-9,), 0), (s.exprel, (-0.5,), 0), (s.exprel, (5.0,), 0),
    (s.rgamma, (-0.5,), 0), (s.rgamma, (0.2,), 0), (s.rgamma, (3.0,), 0),
    (s.ellipkm1, (1e-3,), 0), (s.ellipkm1, (0.05,), 0), (s.ellipkm1, (0.5,), 0), (s.ellipkm1, (40.0,), 0),
    (sp.binomial, (3.0, 5.0), 0), (sp.binomial, (3.0, 5.0), 1), (sp.binomial, (5.0, -2.0), 1),
    (sp.elliptic_f, (1.0, 1e-9), 1), (sp.elliptic_f, (2.0, -0.1), 1), (sp.elliptic_f, (1.0, 0.5), 1),
    (sp.elliptic_e, (1.0, 1e-9), 1), (sp.elliptic_e, (2.0, -0.1), 1), (sp.elliptic_e, (1.0, 0.5), 1),
]  # fmt: skip


@pytest.mark.parametrize(("head", "point", "position"), POINTS, ids=str)
def test_each_form_has_its_digits(head, point, position):
    build, node, operands, _ = node_of(head, point)
    (coefficient,) = [c for c, source, _ in edges(build, node, {operands[position]}.__contains__)]
    found = evaluate(build.graph, [coefficient], dict(zip(operands, point, strict=True)))[0]
    with mpmath.workdps(60):
        wanted = mpmath.diff(reference(head, point, position), mpmath.mpf(point[position]))
    assert found == pytest.approx(float(wanted), rel=1e-11)


@pytest.mark.parametrize("order", [0.0, 1.5, 3.0])
def test_the_expansion_of_bessel_functions(order):
    u = mpmath.mpf(64)
    wanted = mpmath.sqrt(2 * u / mpmath.pi) * mpmath.exp(u) * mpmath.besselk(order, u)
    found = sum(coefficient / u**k for k, coefficient in enumerate(_expansion(order)))
    assert float(found) == pytest.approx(float(wanted), rel=1e-15)


@pytest.mark.parametrize("remainder", [operator.mod, np.mod, np.fmod, math.fmod], ids=["%", "mod", "fmod", "math"])
@pytest.mark.parametrize(("u", "v"), [(1.0, 0.1), (6.0, 0.6), (-1.0, 0.1), (1.0, 0.4), (7.0, -0.7), (-3.0, 0.3)])
def test_a_remainder_has_the_slope_of_the_quotient_that_it_belongs_to(remainder, u, v):
    """1.0 % 0.1 is 1.0 - 9 * 0.1, and 1.0 / 0.1 is rounded to 10."""
    whole = round((u - float(remainder(u, v))) / v)
    assert float(remainder(u, v)) == pytest.approx(u - whole * v, abs=1e-15)
    gradient = sa.grad(remainder, argnums=(0, 1))
    for slopes in (gradient(u, v), sa.compile(gradient, 2.0, 0.3)(u, v)):
        assert tuple(slopes) == (1.0, -whole)
