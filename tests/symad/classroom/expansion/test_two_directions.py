"""Two names in a text are two directions, and not their product."""

import pytest

import symad as sa


@pytest.mark.parametrize("directions", ["v w", " v  w ", ["v", "w"]])
def test_names_with_spaces_between_them_are_directions(directions):
    found = sa.expand("x^3", "x", directions)
    assert str(found.coefficient(1, 2)) in ("6*v*w*x", "6*v*x*w")


def test_a_product_is_written_as_one():
    assert str(sa.expand("x^2", "x", "v*w").coefficient(1)) == "2*v*w*x"
