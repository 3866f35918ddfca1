"""Fourier transforms and what rests on them: NumPy's and SciPy's numbers, known derivatives, kernels, refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import symad as sa
from symad.tracing.numpy.fourier import radices, transform

RANDOM = np.random.default_rng(5)
FILTER = RANDOM.normal(size=9)
LENGTHS = (1, 2, 3, 5, 8, 12, 31, 37, 100, 997, 1024, 2310, 4099)


@pytest.mark.parametrize("n", LENGTHS)
def test_transforms_of_every_length_are_numpys(n):
    """To some roundings of the largest element: prime lengths by a chirp."""
    for behind in ((), (3,)):
        z = RANDOM.normal(size=(n, *behind)) + 1j * RANDOM.normal(size=(n, *behind))
        for given, back in itertools.product((z, z.real), (False, True)):
            real, imaginary = transform((given.real, None if given is not z else given.imag), back=back)
            wanted = np.fft.ifft(given, axis=0) * n if back else np.fft.fft(given, axis=0)
            assert np.abs(real + 1j * imaginary - wanted).max() < 8 * np.finfo(float).eps * np.abs(wanted).max()


def test_passes_are_small():
    for n in range(2, 3000):
        assert not radices(n) or (np.prod(radices(n)) == n and max(radices(n)) <= 31)


@pytest.mark.parametrize("n", [7, 12, 37, 300, 5000])
@pytest.mark.thinned
def test_the_gradient_of_a_weighted_power_spectrum(n):
    """Known in closed form: twice the transform of the conjugate of the weighted spectrum."""
    x, weights = RANDOM.normal(size=n), RANDOM.normal(size=n)
    slope = sa.grad(lambda x: weights @ np.abs(np.fft.fft(x)) ** 2)
    wanted = 2 * np.fft.fft(np.conj(weights * np.fft.fft(x))).real
    scale = 1e-13 * np.abs(wanted).max()
    np.testing.assert_allclose(slope(x), wanted, rtol=0, atol=scale)
    np.testing.assert_allclose(sa.compile(slope, x)(x), wanted, rtol=0, atol=scale)


@pytest.mark.parametrize("n", [6, 11])
def test_jacobians_are_the_matrices_of_the_transforms(n):
    x, matrix = RANDOM.normal(size=n), np.fft.fft(np.eye(n))
    for part in (np.real, np.imag):
        f = sa.jacobian(lambda x, part=part: part(np.fft.fft(x)))
        for found in (f(x), sa.compile(f, x)(x), sa.compile(f, x, roll="never")(x)):
            np.testing.assert_allclose(found, part(matrix), rtol=0, atol=1e-14)


FUNCTIONS = {
    "power": lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 3),
    "filter": lambda x: np.sum(np.sin(np.fft.irfft(np.exp(2j * np.arange(len(x) // 2 + 1)) * np.fft.rfft(x), len(x)))),
    "product": lambda x: np.sum((x * np.fft.fft(x) / np.fft.fft(x[::-1] + 9)).imag * np.cos(x)),
    "convolution": lambda x: np.sum(scipy.signal.fftconvolve(x, x[::-1] ** 2) ** 2),
    "several axes": lambda x: np.sum(np.abs(np.fft.fft2(np.reshape(x, (2, -1))) - 1j) ** 2) * x[0],
    "cosines": lambda x: np.sum(np.sin(scipy.fft.dct(x**2))) + scipy.fft.idst(x)[1] ** 2,
    "angles": lambda x: np.sum(np.angle(np.fft.rfft(x) + 10) * np.arange(len(x) // 2 + 1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_derivatives_of_every_order_and_mode(name):
    f = FUNCTIONS[name]
    x, v = RANDOM.normal(size=8), np.cos(np.arange(8.0))
    found = sa.hessian(f)(x)
    step = 1e-5 * v
    np.testing.assert_allclose(sa.grad(f)(x) @ v, (f(x + step) - f(x - step)) / 2e-5, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found @ v, (sa.grad(f)(x + step) - sa.grad(f)(x - step)) / 2e-5, rtol=1e-6, atol=1e-6)
    scale = {"rtol": 1e-9, "atol": 1e-9 * np.abs(found).max()}
    for mode in ("fwd-fwd", "fwd-rev", "rev-fwd", "rev-rev"):
        np.testing.assert_allclose(sa.hessian(f, mode=mode)(x), found, **scale)
    for options in ({}, {"roll": "never"}):
        np.testing.assert_allclose(sa.compile(sa.hessian(f), x, **options)(x), found, **scale)
    third = sa.grad(lambda x: sa.hvp(f, (x,), (v,)) @ v)
    np.testing.assert_allclose(sa.compile(third, x)(x), third(x), **scale)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_larger_arrays(name):
    f, x = FUNCTIONS[name], RANDOM.normal(size=300)
    wanted = sa.grad(f)(x)
    assert f(x) == pytest.approx(sa.value_and_grad(f)(x)[0], rel=1e-11)
    np.testing.assert_allclose(sa.compile(sa.grad(f), x)(x), wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


REAL = [
    (name, {"type": kind, "norm": norm})
    for name, kind, norm in itertools.product(
        ("dct", "idct", "dst", "idst"), (1, 2, 3), (None, "backward", "ortho", "forward")
    )
    if (kind, norm) != (1, "ortho")
]


@pytest.mark.parametrize(("name", "options"), REAL)
@pytest.mark.thinned
def test_real_transforms_are_scipys(name, options):
    function, x = getattr(scipy.fft, name), RANDOM.normal(size=(4, 6))
    for axis, n in ((-1, None), (0, 3), (1, 9)):
        f = lambda x, axis=axis, n=n: getattr(scipy.fft, name)(x, axis=axis, n=n, **options)  # noqa: E731
        value, tangent = sa.jvp(f, (x,), (x,))
        for found in (value, tangent, sa.compile(f, x)(x)):  # they are linear
            np.testing.assert_allclose(found, function(x, axis=axis, n=n, **options), rtol=0, atol=1e-13)


SIGNALS = [
    (function, mode, first, second)
    for function, mode in itertools.product(("fftconvolve", "convolve", "correlate"), ("full", "same", "valid"))
    for first, second in (((40,), (9,)), ((9,), (40,)), ((3,), (2,)), ((6, 7), (3, 2)))
]


@pytest.mark.parametrize(("function", "mode", "first", "second"), SIGNALS)
@pytest.mark.thinned
def test_convolutions_are_scipys(function, mode, first, second):
    x, y = RANDOM.normal(size=first), RANDOM.normal(size=second)
    f = lambda x, y: getattr(scipy.signal, function)(x, y, mode=mode)  # noqa: E731
    wanted = f(x, y)
    value, tangent = sa.jvp(f, (x, y), (x, y))
    compiled = [sa.compile(f, x, y)(x, y)] if mode == "full" else []  # the others are parts of that
    for found in (value, tangent / 2, *compiled):  # they are linear in both
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13 * np.size(x))


def test_scipys_transforms_are_numpys():
    x = RANDOM.normal(size=12)
    for f in (
        lambda x: scipy.fft.irfft(scipy.fft.rfft(x) * 2j, n=len(x)),
        lambda x: np.abs(scipy.fft.fft2(np.reshape(x, (3, 4)), norm="ortho")),
        lambda x: scipy.fft.ifft(scipy.fft.fft(x, 7), axis=0).imag,
    ):
        np.testing.assert_allclose(sa.compile(f, x)(x), f(x), rtol=0, atol=1e-13)


MOVED = {
    "atleast": lambda z: np.atleast_1d(z[0])[0] + np.atleast_2d(z, z)[1][0] + np.atleast_3d(z)[0, :, 0],
    "repeat": lambda z: z.repeat(2)[1:6] * np.repeat(z, 3)[:5],
    "tile": lambda z: np.tile(z, 2)[3:8] * np.take(z, [4, 0, 0, 1, 2]),
    "rows": lambda z: np.rot90(np.column_stack([z, z * z]))[0] + np.fliplr(np.tril(np.outer(z, z)))[2],
    "diagonal": lambda z: np.diagonal(np.broadcast_to(z, (5, 5))) * np.trace(np.dstack([z, z * z])[0]),
    "trapezoid": lambda z: np.trapezoid(z * z) * z,
}


@pytest.mark.parametrize("name", MOVED)
def test_complex_elements_are_moved_as_numpy_does(name):
    """Values, derivatives by differences and in both modes, kernels."""
    x, f = RANDOM.normal(size=5), lambda x: MOVED[name](np.exp(1j * x) * x)
    for part in (np.real, np.imag):
        g = lambda x, part=part: part(f(x))  # noqa: E731
        value, slope = g(x), sa.jacobian(g)(x)
        steps = [(g(x + h) - g(x - h)) / 2e-6 for h in 1e-6 * np.eye(5)]
        np.testing.assert_allclose(slope, np.stack(steps, -1), rtol=0, atol=1e-8 * np.abs(slope).max())
        np.testing.assert_allclose(sa.jacfwd(g)(x), slope, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(sa.compile(g, x)(x), value, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (lambda x: np.arcsin(np.fft.fft(x)), r"np.arcsin of a complex array"),
        (lambda x: np.fft.fft(x).max(), r"\.max of a complex array"),
        (lambda x: np.sort(np.fft.fft(x)), r"np.sort of a complex array"),
        (lambda x: scipy.fft.dct(x, type=4), r"scipy.fft.dct was called"),
        (lambda x: scipy.signal.fftconvolve(x, x, axes=0), r"scipy.signal.fftconvolve with axes="),
    ],
)
def test_refusals(f, why):
    with pytest.raises(sa.errors.TraceError, match=why):
        sa.jacobian(f)(RANDOM.normal(size=5))


def test_a_real_number_added_to_a_complex_one_clears_the_sign_of_zero():
    """The last element of a spectrum of even length is real: its angle is pi, not -pi."""
    x = np.cos(np.pi * np.arange(4.0)) * -30.0
    assert np.angle(np.fft.rfft(x) + 10)[-1] == np.pi
    value, _ = sa.value_and_grad(lambda x: np.angle(np.fft.rfft(x) + 10)[-1])(x)
    assert value == np.pi


def test_complex_numbers_are_not_taken_from_loops_over_objects():
    """NumPy has no complex arrays of objects: `.imag` of one would be 0."""
    matrix = np.array([[1.0, 1j], [2.0, 1 + 1j]])
    with pytest.raises(sa.errors.TraceError, match=r"\.dot of a complex array|in an object array"):
        sa.compile(lambda x: matrix.dot(x).imag.sum(), np.ones(2))


def test_a_complex_result_is_refused():
    with pytest.raises((sa.errors.ArgumentError, sa.errors.TraceError)):
        sa.jacobian(np.fft.fft)(np.ones(5))
    with pytest.raises((sa.errors.ArgumentError, sa.errors.TraceError)):
        sa.compile(np.fft.fft, np.ones(5))
    for n in (0, -1):
        with pytest.raises(ValueError, match="data points"):
            sa.jacobian(lambda x, n=n: np.fft.fft(x, n).real)(np.ones(5))
