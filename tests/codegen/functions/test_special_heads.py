"""The special heads evaluate in SymPy to what their references say, left of 0 too."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen import special_heads as s
from codegen.functions import reference_functions as exact

SPHERICAL = {
    s.spherical_jn: exact.spherical_bessel,
    s.spherical_yn: exact.spherical_yn,
    s.spherical_in: exact.spherical_in,
    s.spherical_kn: exact.spherical_kn,
}


@pytest.mark.parametrize("head", SPHERICAL, ids=str)
@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("point", ["-2.0", "-0.3", "0.3", "2.0"])
def test_spherical_bessel_functions_have_the_sign_of_their_order(head, order, point):
    """sqrt(pi/(2u)) times a Bessel function of half order, as SymPy's jn and yn have it, changes sign left of 0."""
    with mpmath.workdps(30):
        expected = sp.Float(SPHERICAL[head](mpmath.mpf(order), mpmath.mpf(point)), 25)
    found = head(order, sp.Float(point, 30)).evalf(25)
    assert abs(found - expected) < 1e-20 * abs(expected)


@pytest.mark.parametrize("head", [s.spherical_jn, s.spherical_in], ids=str)
def test_at_zero(head):
    assert [float(head(order, 0).evalf()) for order in range(3)] == [1.0, 0.0, 0.0]


def test_derivatives_of_sinc_and_shi_are_right_left_of_zero():
    z = sp.Symbol("z", real=True)
    for f, point in ((np.sinc, -0.7), (sp.sinc, -2.0), (sp.Si, -2.0), (sp.Shi, -2.0)):
        for order in (1, 2, 3):
            symbolic = sa.derivative(f, order=order)(z).subs(z, point).evalf()
            assert float(symbolic) == pytest.approx(sa.derivative(f, order=order)(point), rel=1e-12)
