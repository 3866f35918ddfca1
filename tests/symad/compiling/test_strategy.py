"""The choice between straight-line code and a sweep: made by counts, shown, overridden, refused by name."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import symad as sa


def network(x):
    rng = np.random.default_rng(2)
    first, second, last = rng.normal(size=(16, 8)), rng.normal(size=(16, 16)), rng.normal(size=16)
    return last @ np.tanh(second @ np.tanh(first @ x))


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def chosen(f, *args, **options) -> tuple[str, dict[str, int]]:
    with sa.choices() as made:
        kernel = sa.compile(f, *args, **options)
    (choice,) = [choice for choice in made if choice.what.startswith("kernel")]
    assert kernel.stats.strategy == choice.chosen
    return choice.chosen, dict(choice.operations)


def test_a_dense_network_is_swept_and_a_banded_hessian_is_not() -> None:
    way, operations = chosen(sa.hessian(network), np.ones(8))
    assert way == "sweep"
    assert operations["sweep"] < operations["straight"]
    way, operations = chosen(sa.hessian(rosenbrock), np.ones(50), roll="never")
    assert way == "straight"
    assert operations["straight"] <= operations["sweep"]


@pytest.mark.parametrize("bits", [256, 512])
def test_the_choice_is_the_same_for_longer_registers(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codegen.lowering.halves.vector_bits", lambda: bits)
    assert chosen(sa.hessian(network), np.ones(8))[0] == "sweep"
    assert chosen(sa.hessian(rosenbrock), np.ones(50), roll="never")[0] == "straight"


def test_no_sweep_is_written_down_for_a_small_function() -> None:
    """Straight lines of it are called as fast."""
    small, larger = (lambda x: np.log(x @ x)), (lambda x: np.log(x @ x) + np.sum(np.sin(x) * np.exp(x)) ** 2)
    refused = sa.plan(sa.hessian(small), np.ones(8)).refused
    assert refused["sweep"] == "8 columns of 16 operations are too few"
    assert "sweep" not in sa.plan(sa.hessian(larger), np.ones(8)).refused
    assert sa.compile(sa.hessian(small), np.ones(8), strategy="sweep", cache=False).stats.strategy == "sweep"


def test_the_choice_can_be_overridden() -> None:
    x = np.random.default_rng(0).normal(size=8)
    swept, straight = (sa.compile(sa.hessian(network), x, strategy=way) for way in ("sweep", "straight"))
    assert (swept.stats.strategy, straight.stats.strategy) == ("sweep", "straight")
    assert swept.stats.total < straight.stats.total / 2
    np.testing.assert_allclose(swept(x), straight(x), rtol=1e-12, atol=1e-14)


def test_a_wide_jacobian_is_not_swept_where_reverse_mode_is_cheap() -> None:
    jacobian = sa.jacobian(lambda x: np.stack([network(x[:8]), network(x[-8:]), x @ x]))
    assert sa.compile(jacobian, np.ones(64), roll="never").stats.strategy == "straight"


@pytest.mark.parametrize(
    "f",
    [
        rosenbrock,
        sa.grad(rosenbrock),
        sa.hessian(rosenbrock, sparse="lower"),
        sa.hessian(rosenbrock, mode="edge"),
        sa.hessian(rosenbrock, wrt="x"),
    ],
)
def test_only_transforms_with_columns_can_be_swept(f) -> None:
    with pytest.raises(sa.errors.ArgumentError, match='strategy="sweep": only a dense Hessian or Jacobian'):
        sa.compile(f, np.ones(4), strategy="sweep")


def test_containers_have_no_columns() -> None:
    with pytest.raises(sa.errors.ArgumentError, match="only a dense Hessian or Jacobian"):
        sa.compile(sa.hessian(lambda p: p["a"] @ p["a"]), {"a": np.ones(4)}, strategy="sweep")


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(sa.errors.ArgumentError, match="strategy='fastest'; use one of auto, straight, sweep"):
        sa.compile(rosenbrock, np.ones(3), strategy="fastest")


def test_branches_are_compiled_in_sweeps_too() -> None:
    def f(x):
        return np.sum(np.sin(x)) ** 2 if x[0] > x[1] else np.prod(x)

    kernel = sa.compile(sa.hessian(f), np.ones(6), strategy="sweep")
    for x in (np.linspace(-1, 1, 6), np.linspace(1, -1, 6)):
        np.testing.assert_allclose(kernel(x), sa.hessian(f)(x), rtol=1e-13, atol=1e-14)


def test_auto_says_why_where_forward_over_reverse_cannot_be_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args):
        raise sa.errors.TraceError("no pushforward today")

    monkeypatch.setattr("symad.compiling.planning.seeded_program", broken)
    x = np.arange(1.0, 9.0)
    planned = sa.plan(sa.hessian(rosenbrock), x)
    assert (planned.chosen, planned.refused["sweep"]) == (
        "straight", "forward over reverse mode is refused: no pushforward today"
    )  # fmt: skip
    with pytest.raises(sa.errors.TraceError, match="no pushforward today"):
        sa.compile(sa.hessian(rosenbrock), x, strategy="sweep")


def test_a_function_that_wraps_a_transform_is_not_taken_for_it() -> None:
    """functools.wraps copies what transforms note on their functions."""
    x = np.random.default_rng(0).normal(size=8)
    hessian = sa.hessian(network)
    twice = functools.wraps(hessian)(lambda x: 2 * hessian(x))
    assert np.allclose(sa.compile(twice, x)(x), 2 * hessian(x), rtol=1e-12)
    with pytest.raises(sa.errors.ArgumentError, match="strategy"):
        sa.compile(twice, x, strategy="sweep")
