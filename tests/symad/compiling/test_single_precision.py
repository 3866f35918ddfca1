"""dtype="float32" of programs with loops and matrices: gradients within the rounding of single precision."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
from tests.support.exported import compiler

F = np.float32
RANDOM = np.random.default_rng(0)


def network(p):
    hidden = np.tanh(NETWORK @ p[:200].reshape(10, 20) + p[200:220])
    out = hidden @ p[220:260].reshape(20, 2)
    return np.mean((out - 1.0) ** 2) + np.sum(np.log(np.sum(np.exp(out), axis=1)))


NETWORK = RANDOM.normal(size=(64, 10))


def logistic(w):
    return np.sum(np.log1p(np.exp(-SIGNS * (DATA @ w))))


DATA, SIGNS = RANDOM.normal(size=(3000, 20)), RANDOM.choice([-1.0, 1.0], 3000)


def mixture(p):
    z = (POINTS[:, None, :] - p[:12].reshape(1, 3, 4)) * np.exp(-p[12:24].reshape(1, 3, 4))
    terms = -0.5 * np.sum(z * z, axis=2) - np.sum(p[12:24].reshape(3, 4), axis=1) + p[24:]
    largest = np.max(terms, axis=1, keepdims=True)
    return -np.sum(np.log(np.sum(np.exp(terms - largest), axis=1)) + largest[:, 0])


POINTS = RANDOM.normal(size=(200, 4))


def bodies(x):
    q = x.reshape(40, 3)
    i, j = np.triu_indices(40, 1)
    return sa.sum_over(lambda a, b: 1 / np.sqrt(np.sum((a - b) ** 2) + 0.01), q[i], q[j])


def recurrence(p):
    def step(carry, u):
        carry = np.tanh(p[0] * carry + p[1] * u + p[2])
        return carry, carry**2

    return np.sum(sa.scan(step, 0.1, np.linspace(-1, 1, 300))[1])


def found(x):
    total = 0.0
    for k in range(len(x) - 1):
        total += 10 * (x[k + 1] - x[k] ** 2) ** 2 + np.sin(x[k]) * np.exp(-x[k + 1])
    return total


def process(p):
    squares = np.sum((POINTS[:60, None, :] - POINTS[None, :60, :]) ** 2 * np.exp(p[:4]), axis=2)
    kernel = np.exp(p[4] - squares / 2) + (np.exp(p[5]) + 0.1) * np.eye(60)
    factor = np.linalg.cholesky(kernel)
    alpha = np.linalg.solve(kernel, POINTS[:60, 0])
    return POINTS[:60, 0] @ alpha / 2 + np.sum(np.log(np.diag(factor)))


CASES = {
    network: RANDOM.normal(size=260) / 5, logistic: RANDOM.normal(size=20) / 5, mixture: RANDOM.normal(size=27) / 5,
    bodies: RANDOM.normal(size=120), recurrence: np.array([0.5, 0.3, 0.1]), found: RANDOM.normal(size=400) / 2,
    process: np.zeros(6),
}  # fmt: skip


def near(single, double, bound=1e-5):
    """Single precision, relative to the largest number."""
    assert np.asarray(single).dtype == F or isinstance(single, float)
    assert np.max(np.abs(single - double)) <= bound * np.max(np.abs(double))


@pytest.mark.parametrize(("f", "x"), CASES.items(), ids=lambda found: getattr(found, "__name__", ""))
@pytest.mark.thinned
def test_gradients(f, x, tmp_path):
    """Against double, by loops in single precision; also many points, on threads, from a file."""
    x = x.astype(F)
    gradient = sa.grad(f)
    kernel = sa.compile(gradient, x, dtype="float32", cache=tmp_path)
    assert kernel.stats.strategy == "rolled"
    wanted = gradient(x.astype(float))
    near(kernel(x), wanted)
    points = np.stack([x, x / 2, x])
    many = kernel.batch(points)
    assert many[0].tobytes() == many[2].tobytes() == kernel(x).tobytes()
    near(many[1], gradient(x.astype(float) / 2))
    assert sa.compile(gradient, x, dtype="float32", threads=2)(x).tobytes() == kernel(x).tobytes()
    kernel.save(tmp_path / "kernel.symad")
    assert sa.load(tmp_path / "kernel.symad")(x).tobytes() == kernel(x).tobytes()
    assert sa.compile(gradient, x, dtype="float32", cache=tmp_path).stats.cached


def few(w):
    return np.sum(np.log1p(np.exp(-SIGNS[:300] * (DATA[:300] @ w))))


@pytest.mark.parametrize(("f", "x"), [(few, logistic), (recurrence, recurrence), (found, found)])
def test_loops_and_straight_lines(f, x):
    x = CASES[x][:30].astype(F)
    loops, lines = (sa.compile(sa.grad(f), x, dtype="float32", roll=roll) for roll in ("always", "never"))
    assert (loops.stats.strategy, lines.stats.strategy) == ("rolled", "straight")
    near(loops(x), lines(x).astype(float))


def test_hessians():
    x = CASES[logistic].astype(F)
    kernel = sa.compile(sa.hessian(logistic), x, dtype="float32")
    near(kernel(x), sa.hessian(logistic)(x.astype(float)))
    chain = CASES[found].astype(F)
    sparse = sa.compile(sa.hessian(found, sparse="lower"), chain, dtype="float32")
    near(sparse(chain), sa.compile(sa.hessian(found, sparse="lower"), chain)(chain.astype(float)))


SQUARE = RANDOM.normal(size=(40, 40)) / 10
OPERATIONS = {
    "product": lambda a: np.sum((a @ a.T @ SQUARE) ** 2),
    "solve": lambda a: np.sum(np.linalg.solve(a + 2 * np.eye(40), SQUARE) ** 2),
    "inv": lambda a: np.sum(np.linalg.inv(a + 2 * np.eye(40)) ** 2),
    "det": lambda a: np.linalg.det(a / 4 + np.eye(40)),
    "slogdet": lambda a: np.linalg.slogdet(a + 2 * np.eye(40))[1],
    "cholesky": lambda a: np.sum(np.linalg.cholesky(a @ a.T + np.eye(40)) ** 3),
    "qr": lambda a: np.sum(np.linalg.qr(a + 2 * np.eye(40))[1] ** 3),
    "eigh": lambda a: np.sum(np.linalg.eigh(a + a.T + np.diag(np.arange(40.0)))[0] ** 3),
    "svd": lambda a: np.sum(np.linalg.svd(a + np.diag(np.arange(40.0)))[1] ** 3),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.thinned
def test_matrices(name):
    """BLAS and LAPACK in single precision, with derivatives."""
    f, a = OPERATIONS[name], SQUARE.astype(F)
    kernel = sa.compile(sa.value_and_grad(f), a, dtype="float32")
    assert kernel.stats.strategy == "rolled"
    assert "lapack.d" not in kernel.llvm
    assert "blas.d" not in kernel.llvm
    value, gradient = sa.value_and_grad(f)(a.astype(float))
    found = kernel(a)
    near(found[0], value, 1e-4)
    near(found[1], gradient, 1e-3)


@pytest.mark.parametrize("scale", [0.01, 1.0, 20.0])
def test_exponentials_of_matrices(scale):
    linalg = pytest.importorskip("scipy.linalg")

    def f(a):
        return np.sum(linalg.expm(a))

    a = (scale * SQUARE[:20, :20]).astype(F)
    kernel = sa.compile(sa.value_and_grad(f), a, dtype="float32")
    assert "blas.sgemm" in kernel.llvm
    value, gradient = sa.value_and_grad(f)(a.astype(float))
    near(kernel(a)[0], value, 1e-3)
    near(kernel(a)[1], gradient, 1e-3)


def test_no_matrix_is_no_number():
    a = -np.eye(30, dtype=F)
    for f in (lambda a: np.sum(np.linalg.cholesky(a)), lambda a: np.sum(np.linalg.solve(a - a, a))):
        kernel = sa.compile(f, a, dtype="float32")
        assert "lapack.s" in kernel.llvm
        assert np.isnan(kernel(a))


def test_export(tmp_path):
    compiler()
    x = CASES[recurrence].astype(F)
    files = sa.compile(sa.grad(recurrence), x, dtype="float32").export(tmp_path, "slope").files
    assert "float *" in files["header"].read_text()
    assert "float work_" in files["source"].read_text()


def test_a_plan_is_that_of_double():
    x = CASES[logistic]
    assert sa.plan(sa.grad(logistic), x, dtype="float32").chosen == sa.plan(sa.grad(logistic), x).chosen == "rolled"


def test_jit():
    slope = sa.jit(sa.grad(found), dtype="float32")
    x = CASES[found].astype(F)
    near(slope(x), sa.grad(found)(x.astype(float)))


def test_errors_are_measured_in_units_of_single():
    kernel = sa.compile(lambda x: np.exp(x) * np.tanh(x), np.zeros(40), dtype="float32", roll="always")
    assert "symad.exp" in kernel.llvm
    assert sa.verify(kernel, np.linspace(-1, 1, 40).astype(F), points=10).worst_ulp < 8
