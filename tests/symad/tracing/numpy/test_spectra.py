"""Eigenvalues, singular values, QR, and their derivatives: every mix of modes, on numbers and compiled, thrice."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import symad as sa

RNG = np.random.default_rng(11)
X, V = np.array([0.8, 0.6]), np.array([0.4, -0.9])
STEP = 1e-5


class Matrices:
    """Matrices of one size, functions of two numbers."""

    def __init__(self, n):
        self.n = n
        self.a, self.b, self.weights = RNG.normal(size=(3, n, n))
        self.tall, self.taller, self.more = RNG.normal(size=(3, n + 2, n))
        self.sides = RNG.normal(size=(n + 2, 2))

    def symmetric(self, x):
        a, b = self.a + self.a.T + np.diag(2.0 * np.arange(self.n)), self.b @ self.b.T / self.n
        return x[0] * a + np.sin(x[1]) * b + x[0] * x[1] * np.eye(self.n)

    def square(self, x):
        return x[0] * self.a + np.sin(x[1]) * self.b

    def high(self, x):
        return x[0] * self.tall + np.sin(x[1]) * self.taller


MADE = {n: Matrices(n) for n in (1, 2, 5, 30)}


def vectors(m, x):
    values, found = np.linalg.eigh(m.symmetric(x))
    return np.sum((found * np.sin(values)) @ found.T * m.weights) + np.sum(found**2 * m.weights)


def singular_vectors(matrix):
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    weights = np.cos(np.arange(u.size).reshape(u.shape))
    return (
        np.sum((u * s**2) @ vt) + np.sum(u**2 * weights) + np.sum(vt**2 * np.sin(np.arange(vt.size)).reshape(vt.shape))
    )


def reflected(matrix, weights):
    q, r = np.linalg.qr(matrix)
    return np.sum(np.sin(q) * weights) + np.sum(r**3)


FUNCTIONS = {
    "eigvalsh": lambda m, x: np.sum(np.sin(np.linalg.eigvalsh(m.symmetric(x)))),
    "eigh": vectors,
    "eigh of the upper triangle": lambda m, x: np.sum(
        np.linalg.eigh(np.triu(m.symmetric(x)) + 3, UPLO="U")[1] ** 2 * m.weights
    ),
    "svdvals": lambda m, x: np.sum(np.sin(np.linalg.svdvals(m.square(x)))),
    "svd": lambda m, x: singular_vectors(m.square(x)),
    "svd of a high matrix": lambda m, x: singular_vectors(m.high(x)),
    "svd of a wide matrix": lambda m, x: singular_vectors(m.high(x).T),
    "norms": lambda m, x: np.linalg.norm(m.square(x), 2) * np.linalg.norm(m.high(x), "nuc"),
    "cond": lambda m, x: np.linalg.cond(np.concatenate([m.high(x), np.ones((m.n + 2, 1))], axis=1)),
    "qr": lambda m, x: reflected(m.square(x), m.weights),
    "qr of a high matrix": lambda m, x: reflected(m.high(x), m.more),
    "qr of a wide matrix": lambda m, x: reflected(m.high(x).T, m.weights),
    "lstsq": lambda m, x: sum(np.sum(part**2) for part in np.linalg.lstsq(m.high(x), m.sides * x[0])[:2]),
    "lstsq of a wide matrix": lambda m, x: np.sum(np.linalg.lstsq(m.high(x).T, m.sides[: m.n, 0] * x[0])[0] ** 3),
    "pinv": lambda m, x: np.sum(np.sin(np.linalg.pinv(m.high(x)))),
    "expm": lambda m, x: np.sum(scipy.linalg.expm(m.square(x) / np.sqrt(m.n)) * m.weights),
    "expm of large numbers": lambda m, x: np.log(np.sum(scipy.linalg.expm(9 * m.square(x)) ** 2)) / 10,
}
MIXES = {
    "forward over reverse": lambda f: lambda x: sa.hvp(f, (x,), (V,)),
    "reverse over forward": lambda f: sa.grad(lambda x: sa.jvp(f, (x,), (V,))[1]),
    "reverse over reverse": lambda f: sa.grad(lambda x: np.sum(sa.grad(f)(x) * V)),
    "forward over forward": lambda f: (
        lambda x: np.array([sa.jvp(lambda y: sa.jvp(f, (y,), (V,))[1], (x,), (unit,))[1] for unit in np.eye(2)])
    ),
    "hessian": lambda f: lambda x: sa.hessian(f)(x) @ V,
}


def third(f):
    return sa.grad(lambda x: np.sum(sa.hvp(f, (x,), (V,)) * V))


def difference(f, x, direction):
    return (f(x + STEP * direction) - f(x - STEP * direction)) / (2 * STEP)


def same(found, wanted, rtol):
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * np.abs(wanted).max() + 1e-12)


@pytest.mark.parametrize("n", MADE)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_derivatives_on_numbers(name, n):
    def f(x):
        return FUNCTIONS[name](MADE[n], x)

    value, gradient = sa.value_and_grad(f)(X)
    assert value == pytest.approx(f(X), rel=1e-11)
    same(gradient, np.array([difference(f, X, unit) for unit in np.eye(2)]), 1e-6)
    wanted = difference(sa.grad(f), X, V)
    for mix in MIXES.values():
        same(mix(f)(X), wanted, 1e-5)
    same(third(f)(X), difference(MIXES["forward over reverse"](f), X, V), 1e-5)


@pytest.mark.parametrize("n", [2, 30])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
@pytest.mark.wide_rows("eigh-30", "svd of a high matrix-30", "svd-30")
def test_kernels(name, n):
    def f(x):
        return FUNCTIONS[name](MADE[n], x)

    if n == 2 and name.startswith(("lstsq", "pinv", "qr")):
        return  # written out, and tested as that
    same(
        np.append(*reversed(sa.compile(sa.value_and_grad(f), X, tier="fast")(X))),
        np.append(*reversed(sa.value_and_grad(f)(X))),
        1e-9,
    )
    wanted = MIXES["forward over reverse"](f)(X)
    names = MIXES if name in ("eigh", "svd of a high matrix") or n == 2 else ["reverse over reverse"]
    for mix in names:
        run = sa.hessian(f) if mix == "hessian" else MIXES[mix](f)
        found = sa.compile(run, X, tier="fast")(X)
        same(found @ V if mix == "hessian" else found, wanted, 1e-8)
    if name in ("eigh", "svd", "qr", "expm"):
        same(sa.compile(third(f), X, tier="fast")(X), third(f)(X), 1e-8)


def test_identities_of_a_large_matrix():
    """Of 200 rows: what is put together again has the derivatives of the matrix itself."""
    a = RNG.normal(size=(200, 200))
    weights = RNG.normal(size=(200, 200))

    def restored(a):
        values, found = np.linalg.eigh(a)
        return np.sum((found * values) @ found.T * weights)

    def halves(a):
        u, s, vt = np.linalg.svd(a)
        return np.sum((u * s) @ vt * weights)

    def triangular(a):
        q, r = np.linalg.qr(a)
        return np.sum(q @ r * weights)

    both = np.tril(weights + weights.T) - np.diag(np.diag(weights))
    for f, wanted in ((restored, both), (halves, weights), (triangular, weights)):
        np.testing.assert_allclose(sa.grad(f)(a), wanted, rtol=0, atol=1e-7)
        np.testing.assert_allclose(sa.compile(sa.grad(f), a)(a), wanted, rtol=0, atol=1e-7)


def test_exponentials():
    """Of what commutes with its derivative, of a turning, of zeros, of a stack; NaN of what is not finite."""
    a, x = RNG.normal(size=(40, 40)) / 3, np.array(0.7)
    for run in (sa.derivative, lambda f: sa.compile(sa.derivative(f), 0.7)):
        np.testing.assert_allclose(
            run(lambda t: scipy.linalg.expm(t * a))(0.7), a @ scipy.linalg.expm(0.7 * a), rtol=1e-10, atol=1e-10
        )
        turning = run(lambda t: scipy.linalg.expm(np.array([[0.0, -1.0], [1.0, 0.0]]) * t))(0.7)
        np.testing.assert_allclose(turning, [[-np.sin(x), -np.cos(x)], [np.cos(x), -np.sin(x)]], rtol=1e-14)
    for run in (sa.grad, lambda f: sa.compile(sa.grad(f), np.zeros((2, 3, 3)))):
        np.testing.assert_allclose(run(lambda a: np.sum(scipy.linalg.expm(a)))(np.zeros((2, 3, 3))), 1.0, rtol=1e-15)
        assert np.isnan(run(lambda a: np.sum(scipy.linalg.expm(a)))(np.full((2, 3, 3), np.nan))).all()
    with pytest.raises(sa.errors.TraceError, match=r"scipy.linalg.expm was called with a traced value: only LAPACK"):
        sa.trace(lambda a: scipy.linalg.expm(a), np.eye(2))
    large = 1e9 * np.triu(np.ones((2, 2)), 1)
    for tangent in (large, 1e-9 * large):  # the length of a tangent is no matter
        found = sa.jvp(lambda a: scipy.linalg.expm(a), (a[:2, :2],), (tangent,))[1]
        wanted = scipy.linalg.expm_frechet(a[:2, :2], tangent / tangent.max(), compute_expm=False) * tangent.max()
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


def weighed(a):
    return np.sum(np.linalg.eigh(a)[1] ** 2 * np.arange(9.0).reshape(3, 3))


def squares(a):
    return np.sum(np.linalg.eigvalsh(a) ** 2)


def test_equal_eigenvalues():
    """Vectors have no derivative; eigenvalues have a first one."""
    turned = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    for a in (np.eye(3), turned @ np.diag([1.0, 1.0, 2.0]) @ turned.T):
        wanted = 2 * np.tril(a + a.T) - 2 * np.diag(np.diag(a))
        np.testing.assert_allclose(sa.grad(squares)(a), wanted, atol=1e-13)
        np.testing.assert_allclose(sa.compile(sa.grad(squares), a)(a), wanted, atol=1e-13)
        assert sa.jvp(squares, (a,), (np.eye(3),))[1] == pytest.approx(2 * np.trace(a))
        for f in (weighed, lambda a: np.sum(sa.grad(squares)(a) ** 2)):
            with pytest.raises(
                sa.errors.RuleError, match="the derivative of the eigenvectors of a matrix: some of its eigenvalues"
            ):
                sa.grad(f)(a)
            found = sa.compile(sa.grad(f), a)(a)
            assert np.isnan(found[np.tri(3, dtype=bool)]).all()


def test_eigenvalues_are_equal_beside_the_largest_one():
    """Two of them differ by less than the rounding errors of the largest, which is the first or the last one."""
    for largest in (-1e8, 1e8):
        a = np.diag(sorted([largest, 1.0, 1.0 + 4e-8]))
        with pytest.raises(sa.errors.RuleError, match="some of its eigenvalues are equal, to the last digits"):
            sa.jvp(lambda a: np.linalg.eigh(a)[1], (a,), (np.ones((3, 3)),))
        assert np.isnan(sa.compile(sa.grad(weighed), a)(a)[np.tri(3, dtype=bool)]).all()


def test_equal_singular_values():
    def f(a):
        return np.sum(np.linalg.svd(a, full_matrices=False)[0] ** 3)

    for a in (np.eye(3)[:, :2] * 1.0, np.outer(np.arange(1.0, 4), [1.0, 2.0])):
        with pytest.raises(
            sa.errors.RuleError, match=r"singular vectors of a matrix: some of its singular values are equal, or 0"
        ):
            sa.grad(f)(a)
        assert np.isnan(sa.compile(sa.grad(f), a)(a)).all()


def test_columns_that_depend_on_each_other():
    a = RNG.normal(size=(30, 4))
    dependent = np.concatenate([a, a[:, :1] - 2 * a[:, 1:2]], axis=1)
    for f in (lambda a: np.sum(np.linalg.qr(a)[0] ** 3), lambda a: np.sum(np.linalg.pinv(a))):
        with pytest.raises(sa.errors.TraceError, match="of a matrix without full rank"):
            sa.grad(f)(dependent)
        assert np.isnan(sa.compile(sa.grad(f), dependent)(dependent)).all()
    assert np.isnan(sa.compile(lambda a: np.linalg.lstsq(a, a[:, 0])[0], dependent)(dependent)).all()


def test_what_is_not_finite():
    a = np.diag([1.0, np.nan, 2.0])
    assert np.isnan(sa.grad(squares)(a)[np.tri(3, dtype=bool)]).all()
    assert np.isnan(sa.compile(squares, a)(a))
    with pytest.raises(np.linalg.LinAlgError, match="SVD did not converge"):
        sa.grad(lambda a: np.linalg.norm(a, 2))(a)


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
def test_singular_values_of_infinite_numbers_are_nan_as_numpys(infinite, size):
    """NumPy raises for NaN only; where vectors are asked for too, its LAPACK may not end at all."""
    a = np.eye(size)
    a[0, 1] = infinite
    for function in (np.linalg.svdvals, lambda a: np.linalg.svd(a)[1], lambda a: np.linalg.norm(a, "nuc")):
        assert np.isnan(sa.vjp(function, a)[0]).all()
        assert np.isnan(sa.compile(function, a)(a)).all()
    assert np.isnan(np.linalg.svdvals(a)).all()


def test_stacks_batches_and_files(tmp_path):
    stack = RNG.normal(size=(2, 3, 3))

    def f(a):
        norms = np.linalg.norm(a, "nuc", (2, 1), keepdims=True) + np.linalg.norm(a, -2, axis=(1, 2))[:, None, None]
        return np.sum(np.sin(np.linalg.eigh(a)[0])) + np.sum(np.linalg.cond(a)) + np.sum(norms)

    kernel = sa.compile(sa.grad(f), stack)
    np.testing.assert_allclose(kernel(stack), sa.grad(f)(stack), rtol=1e-9, atol=1e-11)
    points = RNG.normal(size=(40, 2, 3, 3))
    many = kernel.batch(points, threads=2)
    np.testing.assert_allclose(many[::13], [kernel(point) for point in points[::13]], rtol=1e-12)
    kernel.save(tmp_path / "kernel.symad")
    np.testing.assert_array_equal(sa.load(tmp_path / "kernel.symad")(stack), kernel(stack))


def test_jacobians_scans_and_derivatives_of_a_hessian():
    x = np.array([0.3, 0.8, 1.2])

    def values(x):
        return np.linalg.eigvalsh(np.outer(x, x) + np.diag(x))

    wanted = np.stack([difference(values, x, unit) for unit in np.eye(3)], axis=1)
    for run in (sa.jacobian(values), sa.jacfwd(values), sa.jacrev(values), sa.compile(sa.jacobian(values), x)):
        np.testing.assert_allclose(run(x), wanted, rtol=1e-8, atol=1e-9)

    def steps(x):
        return np.sum(sa.scan(lambda c, k: (values(c * k) / 3, np.sum(c)), x, np.linspace(1.0, 2.0, 5))[1])

    np.testing.assert_allclose(sa.compile(sa.grad(steps), x)(x), sa.grad(steps)(x), rtol=1e-11)

    def total(x):
        return np.sum(sa.hessian(lambda y: np.sum(values(y) ** 3))(x))

    wanted = np.array([difference(total, x, unit) for unit in np.eye(3)])
    np.testing.assert_allclose(sa.grad(total)(x), wanted, rtol=1e-7)
    np.testing.assert_allclose(sa.compile(sa.grad(total), x)(x), wanted, rtol=1e-7)


def test_what_has_no_scalar_form_is_refused_where_that_is_asked_for(tmp_path):
    for run in (
        lambda: sa.trace(squares, np.eye(2)),
        lambda: sa.hessian(squares, sparse=True)(np.eye(2)),
        lambda: sa.compile(squares, np.eye(2), roll="never"),
    ):
        with pytest.raises(sa.errors.TraceError, match=r"np.linalg.eigvalsh was called .*only LAPACK carries it out"):
            run()
    assert sa.compile(squares, np.eye(2), dtype="float32")(np.eye(2)) == 2.0
    kernel = sa.compile(squares, np.eye(2))
    assert kernel.stats.strategy == "rolled"
    with pytest.raises(sa.WorkbenchError, match="only LAPACK carries it out"):
        kernel.export(tmp_path, "squares")
    assert not list(tmp_path.iterdir())


def test_without_scipy_a_kernel_names_the_extra(monkeypatch):
    monkeypatch.setattr("codegen.loops.emit.rolled_code.has_library", lambda: False)
    with pytest.raises(sa.WorkbenchError, match=r"only LAPACK carries it out.*pip install symad\[special\]"):
        sa.compile(sa.grad(squares), np.eye(3), cache=False)
    np.testing.assert_allclose(sa.grad(squares)(np.eye(3)), 2 * np.eye(3))  # on numbers it is NumPy's


def test_a_kernel_of_qr_is_exported_as_loops(tmp_path):
    kernel = sa.compile(lambda a: np.linalg.qr(a)[1], np.ones((9, 9)))
    assert "dgeqrf" not in kernel.export(tmp_path, "factor").files["source"].read_text()


@pytest.mark.parametrize(
    "function",
    [
        lambda a: scipy.linalg.eigh(a, eigvals_only=True),
        lambda a: scipy.linalg.eigh(a, lower=False)[1] ** 2,
        lambda a: scipy.linalg.eigvalsh(a, subset_by_index=(1, 2)),
        lambda a: scipy.linalg.svd(a, full_matrices=False)[0] ** 2,
        lambda a: scipy.linalg.svdvals(a),
        lambda a: scipy.linalg.norm(a, 2),
        lambda a: scipy.linalg.qr(a)[0],
        lambda a: scipy.linalg.qr(a[:, :2], mode="economic")[1],
        lambda a: scipy.linalg.qr(a, mode="r")[0],
        lambda a: scipy.linalg.lstsq(a[:, :2], a[:, 2])[0],
        lambda a: scipy.linalg.pinv(a[:, :2]),
    ],
)
def test_scipys_names(function):
    a = RNG.normal(size=(4, 4)) + np.diag(np.arange(4.0))
    value, tangent = sa.jvp(function, (a,), (np.cos(a),))
    np.testing.assert_allclose(value, function(a), rtol=1e-11)
    np.testing.assert_allclose(tangent, difference(function, a, np.cos(a)), rtol=1e-6, atol=1e-8)
