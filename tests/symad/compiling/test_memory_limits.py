"""max_bytes: what would take more is refused before it is asked for; errors of memory have the user's place."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

import symad as sa
from codegen.errors import MemoryLimitError, WorkspaceError
from codegen.limits import limits, machine_memory
from symad.tracing.calling.memory import SHAPES, check_made

MANY = np.linspace(0.1, 1, 100_000)
FEW = MANY[:3]
MEGABYTE = 1e6


def chain(x):
    return np.sum((x[1:] - x[:-1] ** 2) ** 2)


def zeros(x):
    made = np.zeros((1000, 1000))
    made[0, 0] = x[0]
    return 2 * made[0, 0]


def eye(x):
    return np.sum(np.eye(1000)[0, 0] * x)


def outer(x):
    return np.sum(np.outer(x, x) ** 2)


def broadcast(x):
    return np.sum(x[:, None] * x[None, :])


def tile(x):
    return np.sum(np.tile(x, 10**6) ** 2)


def like(x):
    return np.sum(np.zeros_like(x, shape=(1000, 1000))) + x[0]


def resized(x):
    return np.sum(np.resize(x, 10**7) ** 2)


def padded(x):
    return np.sum(np.pad(x, (10**6, 0), mode="edge") ** 2)


def powers(x):
    return np.sum(np.vander(x, 10**6) ** 2)


LARGE = [(zeros, FEW), (eye, FEW), (outer, MANY), (broadcast, MANY), (tile, FEW), (like, FEW),
         (resized, FEW), (padded, FEW), (powers, FEW)]  # fmt: skip


def peak(run):
    """The error that comes out, and how many bytes were taken meanwhile."""
    sa.compile(sa.grad(chain), FEW)  # what is imported at the first call does not count
    tracemalloc.start()
    try:
        with pytest.raises(MemoryLimitError) as caught:
            run()
        return caught.value, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("f", "x"), LARGE, ids=lambda found: getattr(found, "__name__", ""))
@pytest.mark.parametrize("way", ["compile", "plan", "jit", "numbers"])
@pytest.mark.thinned
def test_arrays_of_the_function(f, x, way):
    slope = sa.grad(f)
    limited = dict.fromkeys(["max_bytes"], MEGABYTE)

    def numbers():
        with limits(**limited):
            slope(x)

    ways = {
        "compile": lambda: sa.compile(slope, x, **limited), "plan": lambda: sa.plan(slope, x, **limited),
        "jit": lambda: sa.jit(slope, **limited)(x), "numbers": numbers,
    }  # fmt: skip
    error, taken = peak(ways[way])
    assert isinstance(error, sa.errors.LimitError)
    assert "max_bytes is 1,000,000; raise max_bytes" in str(error)
    assert error.where.startswith(f"{__file__}:")
    line = int(error.where.rpartition(":")[2]) - f.__code__.co_firstlineno
    assert 1 <= line <= 3
    assert taken < 30 * x.nbytes + 5e6


@pytest.mark.parametrize(("f", "x"), [(zeros, FEW), (eye, FEW), (outer, MANY[:20])])
def test_within_the_limit_all_is_as_before(f, x):
    wanted = sa.grad(f)(x)
    np.testing.assert_allclose(sa.compile(sa.grad(f), x, max_bytes=1e9)(x), wanted, rtol=1e-13)
    with limits(max_bytes=1e9):
        np.testing.assert_array_equal(sa.grad(f)(x), wanted)


def test_a_trace_that_is_kept():
    slope, x = sa.grad(lambda x: np.sum(np.outer(x, x) ** 2)), MANY[:1000]
    for _ in range(3):
        wanted = slope(x)
    with limits(max_bytes=MEGABYTE), pytest.raises(MemoryLimitError, match="1,000 x 1,000 numbers"):
        slope(x)
    with limits(max_bytes=1e7):
        np.testing.assert_array_equal(slope(x), wanted)


@pytest.mark.parametrize("transform", [sa.hessian, lambda f: sa.jacobian(sa.grad(f))])
def test_dense_matrices_are_refused_at_once(transform):
    """On numbers also without a limit, if the machine has no such memory."""
    size = int((machine_memory() / 8) ** 0.5) + 1000
    for x, given in ((np.ones(size), {}), (MANY[:2000], {"max_bytes": MEGABYTE})):
        with limits(**given), pytest.raises(MemoryLimitError, match=f"x {len(x):,} entries, .* sparse=True"):
            transform(chain)(x)
    with limits(max_bytes=1e7):
        assert len(sa.hessian(chain, sparse="lower")(MANY[:2000]).data) == 3999


def test_results_of_kernels():
    for options in ({}, {"roll": "never"}):
        with pytest.raises(MemoryLimitError, match=r", 32,000,000 bytes \(30.5 MiB\)"):
            sa.compile(sa.hessian(chain), MANY[:2000], max_bytes=MEGABYTE, **options)
    assert sa.compile(sa.hessian(chain, sparse="lower"), MANY[:2000], max_bytes=MEGABYTE) is not None


def test_workspaces_and_loaded_kernels(tmp_path):
    def recurrence(p):
        return sa.fori_loop(0, 100_000, lambda k, carry: np.sin(p[0] * carry + p[1]), 0.1)

    with pytest.raises(MemoryLimitError, match="workspace"):
        sa.compile(sa.grad(recurrence), FEW, max_bytes=0.7 * MEGABYTE)
    sa.compile(sa.grad(recurrence), FEW).save(tmp_path / "kernel.symad")
    with pytest.raises(MemoryLimitError, match="workspace"):
        sa.load(tmp_path / "kernel.symad", max_bytes=0.7 * MEGABYTE)


@pytest.mark.parametrize("limit", [0, -1, "1", float("nan")])
def test_wrong_limits(limit):
    with pytest.raises(sa.errors.ArgumentError, match="max_bytes="):
        sa.compile(chain, FEW, max_bytes=limit)


def vast(x):
    return np.zeros((10**7, 10**7))[0, 0] + x[0]


def test_errors_of_memory_have_the_place():
    """NumPy's MemoryError never comes out as it is; what comes is a MemoryError too."""
    for run in (lambda: sa.grad(vast)(FEW), lambda: sa.compile(vast, FEW), lambda: sa.trace(vast, FEW)):
        with pytest.raises(MemoryError, match="Unable to allocate") as caught:
            run()
        assert isinstance(caught.value, WorkspaceError)
        assert caught.value.where == f"{__file__}:{vast.__code__.co_firstlineno + 1}"


def test_results_that_no_machine_has():
    size = 10**6
    kernel = sa.compile(sa.jacobian(lambda x: np.sin(x)), np.ones(size))
    for run in (lambda: kernel(np.ones(size)), lambda: kernel.batch(np.ones((2, size)))):
        with pytest.raises(WorkspaceError, match="results of"):
            run()


CALLS = {
    np.zeros: [((3, 4),), (5,), ([2, 2],)], np.full: [((3, 4), 1.0)], np.eye: [(3,), (3, 4)], np.tri: [(3, 2)],
    np.identity: [(4,)], np.outer: [(np.ones(3), np.ones((2, 2)))], np.kron: [(np.eye(2), np.eye(3))],
    np.tile: [(np.ones(3), 4), (np.ones(3), (2, 2))], np.repeat: [(np.ones(3), 4), (np.ones(3), [1, 2, 3])],
    np.arange: [(5,), (2, 9), (2, 9, 3), (9, 2, -2), (0, 0)], np.linspace: [(0, 1), (0, 1, 7), (np.zeros(2), 1, 3)],
    np.logspace: [(0, 1, 7)], np.geomspace: [(1, 2, 7)], np.indices: [((3, 4),)],
    np.fromfunction: [(lambda i, j: np.stack((i, j)), (3, 4))],
    np.diag: [(np.ones(3),), (np.ones(3), -2), (np.eye(3),)], np.diagflat: [(np.ones(3), 1)],
    np.zeros_like: [(np.ones((2, 3)),)], np.ones_like: [(np.ones(2),)], np.full_like: [(np.ones(2), 3.0)],
    np.ones: [(3,)], np.empty: [((2, 2),)], np.empty_like: [(np.ones(3),)],
    np.resize: [(np.ones(3), 7), (np.ones(3), (2, 2))], np.vander: [(np.ones(3),), (np.ones(3), 5)],
    np.pad: [(np.ones(3), 2), (np.ones((2, 3)), ((1, 2), (0, 3))), (np.ones(3), (1, 2))],
}  # fmt: skip


def test_what_numpy_s_functions_make():
    assert CALLS.keys() == SHAPES.keys()
    for function, args in itertools.chain(*([(key, args) for args in calls] for key, calls in CALLS.items())):
        size = function(*args).nbytes
        with limits(max_bytes=size or 1):
            check_made(function, args, {})
        if size > 8 and not (function is np.diag and args[0].ndim == 2):
            with limits(max_bytes=size - 1), pytest.raises(MemoryLimitError):
                check_made(function, args, {})
    with limits(max_bytes=1):
        check_made(np.zeros, ("nonsense",), {})
