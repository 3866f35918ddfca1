"""compile(..., roll=): loops give the numbers of straight lines, for every transform, structure and layout."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import symad as sa
from symad.compiling import planning

RNG = np.random.default_rng(7)
X = RNG.uniform(0.3, 1.2, 60)
DATA, LABELS = RNG.normal(size=(80, 4)), RNG.choice([-1.0, 1.0], 80)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def pairs(x):
    total = 0.0
    for i in range(len(x) // 3):
        for j in range(i):
            square = np.sum((x[3 * i : 3 * i + 3] - x[3 * j : 3 * j + 3]) ** 2)
            total = total + 1 / square**3 - 1 / square**2
    return total


def logistic(weights):
    return np.sum(np.log1p(np.exp(-LABELS * (DATA @ weights))))


def soft_maximum(x):
    return np.log(np.sum(np.exp(x) * np.cos(x)))


def diffusion(u):
    return u[2:] - 2 * u[1:-1] + u[:-2] - 0.1 * u[1:-1] ** 3


def descent(x, rate=0.01, steps=100):
    velocity = 0 * x
    for _ in range(steps):
        gradient = np.stack([4 * x[0] * (x[0] ** 2 - x[1]) + 2 * (x[0] - 1), 2 * (x[1] - x[0] ** 2)])
        velocity = 0.9 * velocity - rate * gradient
        x = x + velocity
    return (x[0] - 1) ** 2 + x[1] ** 2


def both(transformed, *args):
    """Return the results of a function as loops and as straight lines, and the kernel with the loops."""
    rolled, straight = (sa.compile(transformed, *args, roll=roll) for roll in ("always", "never"))
    assert rolled.stats.strategy == "rolled"
    assert straight.stats.strategy != "rolled"
    return rolled(*args), straight(*args), rolled


SCALARS = [(rosenbrock, X), (pairs, X[:36]), (logistic, X[:4]), (soft_maximum, X), (descent, X[:2])]
TRANSFORMS = {
    "value": lambda f: f,
    "gradient": sa.grad,
    "value and gradient": sa.value_and_grad,
    "Hessian": sa.hessian,
    "lower Hessian": lambda f: sa.hessian(f, sparse="lower"),
    "Hessian in csc": lambda f: sa.hessian(f, sparse=True, format="csc"),
    "Jacobian of gradient": lambda f: sa.jacobian(sa.grad(f)),
}


CASES = [
    (f, x, name)
    for f, x in SCALARS
    for name in TRANSFORMS
    if f is not descent or ("ess" not in name and "Jac" not in name)
]


@pytest.mark.parametrize(("f", "x", "transform"), CASES, ids=[f"{f.__name__}, {name}" for f, _, name in CASES])
@pytest.mark.thinned
def test_scalars(f, x, transform):
    rolled, straight, kernel = both(TRANSFORMS[transform](f), x)
    pairs_of = zip(rolled, straight, strict=True) if isinstance(straight, tuple) else [(rolled, straight)]
    for found, expected in pairs_of:
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.max(np.abs(expected)))
    assert kernel.stats.seconds


def test_the_hessian_of_a_chain_goes_by_columns(monkeypatch):
    monkeypatch.setattr("symad.derivatives.loops.columns_of_regions.FEWEST_OPERATIONS", 2000)
    rolled, straight, _ = both(sa.hessian(lambda x: descent(x, steps=150)), X[:2])
    np.testing.assert_allclose(rolled, straight, rtol=1e-8)
    with pytest.raises(sa.errors.ArgumentError, match="its Hessian is not taken of loops in this form"):
        sa.compile(sa.hessian(descent, sparse="lower"), X[:2], roll="always")


@pytest.mark.parametrize("options", [{}, {"sparse": True}, {"sparse": True, "format": "csr"}], ids=str)
def test_jacobians(options):
    rolled, straight, kernel = both(sa.jacobian(diffusion, **options), X)
    np.testing.assert_allclose(rolled, straight, rtol=1e-13)
    assert kernel.sparsity == sa.compile(sa.jacobian(diffusion, **options), X, roll="never").sparsity


def test_derivatives_in_one_number():
    for order in (1, 2, 3):
        rolled, straight, _ = both(sa.derivative(lambda rate: descent(X[:2], rate), order), 0.01)
        np.testing.assert_allclose(rolled, straight, rtol=1e-8)


def test_arguments_and_results_keep_their_structure():
    def f(parameters, scale):
        return np.sum(np.sin(parameters["a"]) * parameters["b"][0] * scale + parameters["a"] ** 2)

    args = ({"a": X, "b": [X + 1]}, 2.0)
    kernel = sa.compile(sa.value_and_grad(f, (1, 0)), *args, roll="always")
    value, (slope, gradient) = kernel(*args)
    expected, (expected_slope, expected_gradient) = sa.value_and_grad(f, (1, 0))(*args)
    np.testing.assert_allclose([value, slope], [expected, expected_slope], rtol=1e-13)
    np.testing.assert_allclose(gradient["a"], expected_gradient["a"], rtol=1e-13)
    np.testing.assert_allclose(gradient["b"][0], expected_gradient["b"][0], rtol=1e-13)


def test_shapes_of_matrices():
    def f(x):
        return np.sum(np.sin(x[1:] * x[:-1]) * x[1:, :1])

    x = RNG.normal(size=(12, 5))
    rolled, straight, _ = both(sa.hessian(f), x)
    assert rolled.shape == (12, 5, 12, 5)
    np.testing.assert_allclose(rolled, straight, rtol=1e-12, atol=1e-14)


def test_kernels_with_loops_are_kept_and_called_in_every_way(tmp_path):
    kernel = sa.compile(sa.hessian(rosenbrock, sparse="lower", format="csc"), X, roll="always")
    expected = kernel(X)
    kernel.save(tmp_path / "h.symad")
    for again in (sa.load(tmp_path / "h.symad"), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(again(X), expected)
    out = np.empty_like(expected)
    kernel.into(out, X)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(kernel.batch(np.stack([X, X]))[1], expected)
    assert kernel.scipy(X).shape == (60, 60)


def test_auto_takes_loops_where_there_is_much_to_do_and_lines_where_there_is_little():
    long, short = np.linspace(0.1, 1, 2000), np.linspace(0.1, 1, 10)
    assert sa.compile(sa.grad(rosenbrock), long).stats.strategy == "rolled"
    assert sa.compile(sa.grad(rosenbrock), short).stats.strategy == "straight"
    with sa.choices() as made:
        sa.compile(sa.grad(rosenbrock), long)
    assert [choice.chosen for choice in made if choice.what.startswith("kernel")] == ["rolled"]


def test_the_code_does_not_grow():
    def lines(n):
        return sa.compile(sa.hessian(rosenbrock, sparse="lower"), np.ones(n), roll="always").llvm.count("\n")

    assert lines(90_000) < 1.2 * lines(9000)


@pytest.mark.parametrize(
    ("f", "options", "message"),
    [
        (lambda x: x[0] * x[1], {}, "too few operations for loops"),
        (rosenbrock, {"dtype": "complex128"}, "dtype='complex128'"),
        (rosenbrock, {"strategy": "sweep"}, "strategy='sweep'"),
    ],
    ids=["nothing", "complex128", "sweep"],
)
def test_what_cannot_be_rolled_is_refused_by_name(f, options, message):
    with pytest.raises(sa.errors.ArgumentError, match=message):
        sa.compile(f, X, roll="always", **options)


def test_words_that_there_are_not():
    with pytest.raises(sa.errors.ArgumentError, match="roll='maybe'"):
        sa.compile(rosenbrock, X, roll="maybe")
    with pytest.raises(sa.errors.ArgumentError, match="checkpoints='some'"):
        sa.compile(sa.grad(rosenbrock), X, checkpoints="some")
    with pytest.raises(
        sa.errors.ArgumentError, match=r'test_rolling.py:\d+: checkpoints="sqrt" of .*: too few operations'
    ):
        sa.compile(sa.grad(lambda x: x[0] * x[1]), X, checkpoints="sqrt")
    with pytest.raises(sa.errors.ArgumentError, match="checkpoints='sqrt' with roll='never'"):
        sa.compile(sa.grad(rosenbrock), X, checkpoints="sqrt", roll="never")


def test_complex_numbers_have_no_loops():
    kernel = sa.compile(sa.grad(rosenbrock), np.linspace(0.1, 1, 500), dtype="complex128")
    assert kernel.stats.strategy == "straight"


def test_loops_in_single_precision():
    x = np.linspace(0.1, 1, 500)
    kernel = sa.compile(sa.grad(rosenbrock), x, dtype="float32")
    assert kernel.stats.strategy == "rolled"
    np.testing.assert_allclose(kernel(x.astype(np.float32)), sa.grad(rosenbrock)(x), rtol=1e-3, atol=1e-3)


def test_a_custom_derivative_is_not_lost_in_a_loop():
    def f(x):
        return sum(sa.stop_gradient(x[k]) * x[k] ** 2 for k in range(60))

    with pytest.raises(sa.errors.ArgumentError, match="belongs to one node"):
        sa.compile(sa.grad(f), X, roll="always")
    np.testing.assert_allclose(sa.compile(sa.grad(f), X)(X), 2 * X**2, rtol=1e-14)
    assert sa.compile(f, X, roll="always").stats.strategy == "rolled"


@pytest.mark.parametrize("policy", ["all", "sqrt", "none"])
def test_checkpoints_give_the_same_gradient_from_less_memory(policy):
    def f(p):
        def step(carry, _):
            position, velocity = carry
            velocity = 0.9 * velocity - p[0] * np.sin(position)
            return (position + velocity, velocity), None

        (position, _), _ = sa.scan(step, (p[1], p[2]), None, length=1000)
        return position**2

    p = np.array([0.1, 0.5, 0.0])
    kernel = sa.compile(sa.grad(f), p, checkpoints=policy)
    np.testing.assert_allclose(kernel(p), sa.grad(f)(p), rtol=1e-9)
    assert (
        {"all": 1000, "sqrt": 50, "none": 20}[policy]
        <= kernel.stats.workspace
        <= {"all": 9000, "sqrt": 900, "none": 400}[policy]
    )


@pytest.mark.parametrize("size", [3, 40])
def test_a_function_without_transforms_is_traced_once(size):
    calls = []

    def f(x):
        calls.append(len(x))
        return np.sum(np.sin(x) * x)

    for roll in ("auto", "never"):
        calls.clear()
        sa.compile(f, np.ones(size), roll=roll)
        assert calls == [size]


def test_a_sweep_is_traced_once(monkeypatch):
    calls = []
    made = planning.seeded_program
    monkeypatch.setattr(planning, "seeded_program", lambda *args: calls.append(1) or made(*args))
    weights = np.random.default_rng(0).normal(size=(16, 8))
    kernel = sa.compile(sa.hessian(lambda x: np.sum(np.tanh(weights.T @ np.tanh(weights @ x)))), np.ones(8))
    assert kernel.stats.strategy in ("sweep", "rolled")
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["logistic", "map", "pairs"])
def test_the_code_does_not_grow_with_the_size_of_arrays(name: str) -> None:
    """As the page of loops says: only inputs, places and constants are looked at one by one."""

    def compiled(n: int) -> sa.Kernel:
        data, (i, j) = np.linspace(-1.0, 1.0, n).reshape(-1, 4), np.tril_indices(n // 100, -1)
        functions = {
            "logistic": (lambda w: np.sum(np.log1p(np.exp(-(data @ w)))), np.zeros(4)),
            "map": (lambda x: np.sum(np.sin(x) * np.exp(-x * x)), np.zeros(n)),
            "pairs": (lambda x: np.sum((x[i] - x[j]) ** 4), np.zeros(n // 100)),
        }
        f, x = functions[name]
        return sa.compile(sa.grad(f), x)

    small, large = compiled(80_000), compiled(240_000)
    assert small.stats.strategy == large.stats.strategy == "rolled"
    lines = [len(kernel.llvm.splitlines()) for kernel in (small, large)]  # a table is one line
    assert lines[1] < 1.1 * lines[0]
    assert large.program.operations == small.program.operations
