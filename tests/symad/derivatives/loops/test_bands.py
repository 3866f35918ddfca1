"""Band matrices: entries that lie in turns in memory are stored as whole vectors, with the bits of the loops' order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import symad as sa

Vector = npt.NDArray[np.float64]


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def far(x: Any) -> Any:
    return np.sum((x[3:] * x[:-3]) ** 2 * x[1:-2])


def wide(x: Any) -> Any:
    return np.sum(x[2:] * x[1:-1] * x[:-2] * x[2:])


def pairs(x: Any) -> Any:
    return np.sum((x[::2] - x[1::2] ** 2) ** 2 * x[::2])


def ordered(kernel: Any, x: Vector) -> Vector:
    """The numbers of a kernel, sorted by rows and columns."""
    pattern = kernel.sparsity
    found: Vector = kernel(x)[np.lexsort((pattern.columns, pattern.rows))]
    return found


@pytest.mark.parametrize("f", [rosenbrock, far, wide, pairs])
@pytest.mark.parametrize("sparse", ["lower", "upper", "full"])
@pytest.mark.thinned
def test_entries_in_turns(f: Callable[[Any], Any], sparse: Any) -> None:
    """Whole vectors, none, and every rest behind them; loops in the order of the matrix, and straight lines."""
    for n in (46, 48, 54, 60, 62, 66, 100, 1002):
        x = np.random.default_rng(n).normal(size=n)
        straight = sa.compile(sa.hessian(f, sparse=sparse), x, roll="never", tier="fast", cache=False)
        by_loops = sa.compile(sa.hessian(f, sparse=sparse, format="regions"), x, roll="always", cache=False)
        for form in ("coo", "csc"):
            kernel = sa.compile(sa.hessian(f, sparse=sparse, format=form), x, roll="always", cache=False)
            assert np.array_equal(ordered(kernel, x), ordered(by_loops, x)), (n, form)
            np.testing.assert_allclose(ordered(kernel, x), ordered(straight, x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sparse", ["lower", "full"])
def test_a_chain_writes_its_band_at_once(sparse: Any) -> None:
    """No copy, no zeros before, and no number stored alone in the loop over whole vectors."""
    kernel = sa.compile(sa.hessian(rosenbrock, sparse=sparse), np.ones(1000), cache=False)
    assert len(kernel.stats.regions) == 1
    assert kernel.stats.workspace == 0
    text = kernel.llvm
    loop = text[text.index("\nvector:") : text.index("\nwhole:")]
    stores = [line for line in loop.split("\n") if line.startswith("store")]
    assert stores
    assert all(line.startswith("store <") for line in stores)
    assert "call void @llvm.memset" not in text


def energies(x: Any) -> Any:
    """Of all pairs of points in space: blocks of three by three below the diagonal, and on it."""
    first, second = np.triu_indices(len(x) // 3, 1)
    difference = x.reshape(-1, 3)[first] - x.reshape(-1, 3)[second]
    square = np.sum(difference**2, axis=1)
    return np.sum(1 / square**2 - 1 / square)


@pytest.mark.parametrize("sparse", ["lower", "full", False])
def test_pairs_write_their_blocks_where_they_belong(sparse: Any) -> None:
    """Runs of every length up to three registers; only what is added up, on and near the diagonal, is copied."""
    for atoms in (5, 10, 22):
        x = np.random.default_rng(atoms).normal(size=3 * atoms)
        straight = sa.compile(sa.hessian(energies, sparse=sparse), x, roll="never", tier="fast", cache=False)
        for form in ("coo", "csc") if sparse else ("coo",):
            kernel = sa.compile(sa.hessian(energies, sparse=sparse, format=form), x, roll="always", cache=False)
            scale = np.abs(straight(x)).max()
            ours, expected = (ordered(each, x) if sparse else each(x) for each in (kernel, straight))
            np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12 * scale, err_msg=f"{atoms} {form}")
            near = 6 if sparse == "lower" else 9
            if atoms > 20:
                assert [region.count for region in kernel.program.steps] == [atoms * (atoms - 1) // 2, near * atoms]


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.thinned
def test_blocks_of_a_band(threads: int) -> None:
    """Sums at the ends of blocks meet those of the next one."""
    x = np.random.default_rng(0).normal(size=200_003)
    blocks = []
    for f, sparse in product((rosenbrock, wide), ("lower", "full")):
        derivative = sa.hessian(f, sparse=sparse)  # type: ignore[call-overload]
        kernels = [sa.compile(derivative, x, cache=False, threads=count) for count in (1, threads)]
        assert kernels[0](x).tobytes() == kernels[1](x).tobytes()
        blocks += [region.blocks for region in kernels[1].stats.regions]
    assert max(blocks) > 1


def test_single_precision() -> None:
    x = np.random.default_rng(5).normal(size=333).astype(np.float32)
    kernels = [
        sa.compile(sa.hessian(rosenbrock, sparse="full", format=form), x, dtype="float32", cache=False)
        for form in ("coo", "regions")
    ]
    assert np.array_equal(ordered(kernels[0], x), ordered(kernels[1], x))
