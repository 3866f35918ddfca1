"""An option that a transform does not have is refused where it is given, with the nearest one that it has."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa


@pytest.mark.parametrize(
    ("transform", "typed", "meant"),
    [
        (sa.grad, "argnum", "argnums"),
        (sa.value_and_grad, "wr", "wrt"),
        (sa.derivative, "ordre", "order"),
        (sa.jacfwd, "argnum", "argnums"),
        (sa.jacrev, "argnum", "argnums"),
        (sa.jacobian, "sparce", "sparse"),
        (sa.hessian, "formt", "format"),
        (sa.laplacian, "mod", "mode"),
        (sa.partials, "alon", "along"),
        (sa.batched_jacobian, "mod", "mode"),
        (sa.value_gradient_hessian, "constraint", "constraints"),
        (sa.jit, "treads", "threads"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_nearest_option_is_proposed(transform, typed: str, meant: str) -> None:
    with pytest.raises(
        sa.errors.ArgumentError, match=rf"^{typed}=...: there is no such option; did you mean {meant}\?$"
    ):
        transform(np.sum, **{typed: 1})


def test_keywords_of_the_function_are_its_own() -> None:
    def scaled(x, sparce=1.0):
        return sparce * np.sum(x**2)

    assert sa.grad(scaled)(np.ones(2), sparce=3.0).tolist() == [6.0, 6.0]
    assert sa.hessian(scaled, argnums=0)(np.ones(1), sparce=3.0).tolist() == [[6.0]]
