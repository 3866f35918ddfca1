"""Array programs that others wrote: from packages on the index, and from the examples in their source archives.

Each is a maker, which imports its package and returns a function of one argument, a point at the size that it is used
at, and the value and the gradient by the tool that the package uses. Nothing is copied and nothing installed: source
archives (autograd's and pymanopt's) are looked for in the folder that SYMAD_FOREIGN names.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.support.captured import CapturedError, Function, captured, optimizers_taken, script


@dataclass(frozen=True)
class Program:
    """A function, a point, and value and gradient by another tool."""

    function: Function
    point: Any
    tool: Callable[[Any], tuple[Any, Any]]


@dataclass(frozen=True)
class Row:
    """A program of a package: what makes it, its size in words, and its tool's name."""

    package: str
    size: str
    tool: str
    make: Callable[[], Program]


ROWS: dict[str, Row] = {}


def _row(name: str, package: str, size: str, tool: str) -> Callable[[Callable[[], Program]], Callable[[], Program]]:
    def add(make: Callable[[], Program]) -> Callable[[], Program]:
        ROWS[name] = Row(package, size, tool, make)
        return make

    return add


def _archive(start: str) -> Path:
    folder = Path(os.environ.get("SYMAD_FOREIGN", "."))
    found = sorted(folder.glob(f"{start}-*/examples"))
    if not found:
        raise ModuleNotFoundError(f"no {start}-*/examples in {folder}: unpack its source archive there")
    return found[-1]


def _module(name: str, **members: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(members)
    return module


# Examples of autograd, run as scripts until they optimize; NumPy and SciPy in place of autograd's modules


def _digits(count: int) -> tuple[Any, Any]:
    """Return images of random numbers in the form of MNIST's, which the examples would download."""
    rng = np.random.default_rng(count)
    return rng.integers(0, 256, size=(count, 28, 28)), rng.integers(0, 10, size=count)


def _example(path: str, size: str, last: Callable[[Any], Any] = lambda value: value) -> None:
    def make() -> Program:
        file = _archive("autograd") / f"{path}.py"
        data = _module("data_mnist", mnist=lambda: (*_digits(256), *_digits(16)))
        value_and_grad = importlib.import_module("autograd").value_and_grad
        function, start = script(file, True, data_mnist=data)
        original, _ = script(file, False, data_mnist=data)
        return Program(lambda x: last(function(x)), start, value_and_grad(lambda x: last(original(x))))

    ROWS[Path(path).name.replace("_", " ")] = Row("autograd", size, "autograd", make)


_example("neural_net", "784-200-100-10, 256 images")
_example("convnet", "LeNet, 256 images")
_example("rnn", "40 states, 30 steps")
_example("lstm", "40 states, 30 steps")
_example("variational_autoencoder", "444,404 parameters, 200 images")
_example("bayesian_neural_net", "962 parameters")
_example("neural_net_regression", "33 parameters")
_example("black_box_svi", "2,000 samples")
_example("natural_gradient_black_box_svi", "2,000 x 40 samples")
_example("mixture_variational_inference", "10 components, 40 samples")
_example("gaussian_process", "20 points")
_example("deep_gaussian_process", "20 points, 2 layers")
_example("gplvm", "90 points, 190 parameters")
_example("gmm", "300 points, 10 components")
_example("ica", "100 x 200, 601 parameters")
_example("hmm_em", "60 lines of text, 20 states")
_example("negative_binomial_maxlike", "1,000 points")
_example("bayesian_optimization", "1 point", np.sum)
_example("fluidsim/fluidsim", "63 x 64, 100 steps")
_example("fluidsim/wing", "40 x 60, 20 steps")
_example("ode_net", "odeint, 30 times")


# Examples of pymanopt: costs in NumPy, gradients by hand


def _problem_met(manifold: Any, cost: Any, *, euclidean_gradient: Any, **_: Any) -> Any:
    raise CapturedError(cost, (manifold, euclidean_gradient))


def _manifold(name: str, size: str, is_right: bool = True) -> None:
    def make() -> Program:
        folder = _archive("pymanopt")
        importlib.import_module("pymanopt")
        for tool in ("torch", "tensorflow"):
            sys.modules.setdefault(tool, _module(tool))
        sys.path.insert(0, str(folder.parent))
        np.random.seed(0)  # as the example draws
        example = importlib.import_module(f"examples.{name}")
        with mock.patch("pymanopt.Problem", _problem_met):
            try:
                example.run(backend="numpy")
            except CapturedError as found:
                cost, (manifold, gradient) = found.function, found.start
        point = manifold.random_point()
        if not is_right:
            return Program(cost, np.asarray(point), lambda x: (cost(x), differences(cost, x)))
        if not isinstance(point, (list, tuple)):
            return Program(cost, np.asarray(point), lambda x: (cost(x), gradient(x)))
        return Program(lambda x: cost(*x), list(point), lambda x: (cost(*x), list(gradient(*x))))

    ROWS[name.replace("_", " ")] = Row("pymanopt", size, "its gradient" if is_right else "differences", make)


for _name, _size in {
    "low_rank_matrix_approximation": "5 x 4", "multiple_linear_regression": "200 x 3", "pca": "200 x 3",
    "optimal_rotations": "10 of 3 x 3",
    "dominant_invariant_subspace": "128 x 128",
}.items():  # fmt: skip
    _manifold(_name, _size)
_manifold("rank_k_correlation_matrix_approximation", "10 x 10", is_right=False)  # its gradient is half of what it is


# scikit-learn


def _regression(rows: int, columns: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(rows, columns)), rng.normal(size=columns) * 0.3
    return x, x @ w, w


@_row("Huber loss", "scikit-learn", "100,000 x 20", "its gradient")
def huber() -> Program:
    loss = importlib.import_module("sklearn.linear_model._huber")._huber_loss_and_gradient
    x, y, w = _regression(100_000, 20)
    y = y + np.random.default_rng(1).standard_t(2, size=len(y))
    given = x, y, 1.35, 1e-4, np.ones(len(y))
    return Program(lambda p: loss(p, *given)[0], np.concatenate([w * 0.5, [0.1, 1.2]]), lambda p: loss(p, *given))


@_row("neighbourhood components", "scikit-learn", "300 x 20 to 5", "its gradient")
def neighbourhood() -> Program:
    model = importlib.import_module("sklearn.neighbors").NeighborhoodComponentsAnalysis()
    model.n_iter_ = 1
    x, _, _ = _regression(300, 20)
    labels = np.arange(300) % 4
    given = x, labels[:, None] == labels, -1.0
    start = np.random.default_rng(1).normal(size=100) * 0.1
    return Program(lambda p: model._loss_grad_lbfgs(p, *given)[0], start, lambda p: model._loss_grad_lbfgs(p, *given))


@_row("Gaussian process regression", "scikit-learn", "300 points, RBF and noise", "its gradient")
def process_regression() -> Program:
    gaussian = importlib.import_module("sklearn.gaussian_process")
    kernels = gaussian.kernels
    kernel = kernels.ConstantKernel(1.5) * kernels.RBF(np.full(3, 1.2)) + kernels.WhiteKernel(0.1)
    x, y, _ = _regression(300, 3)
    model = gaussian.GaussianProcessRegressor(kernel, optimizer=None).fit(x, np.sin(y))
    return Program(
        lambda p: model.log_marginal_likelihood(p),
        np.array(kernel.theta),
        lambda p: model.log_marginal_likelihood(p, eval_gradient=True),
    )


@_row("matrix factorization, Kullback-Leibler", "scikit-learn", "500 x 200, rank 10", "its gradient")
def factorization() -> Program:
    divergence = importlib.import_module("sklearn.decomposition._nmf")._beta_divergence
    rng = np.random.default_rng(0)
    x, w, h = (rng.uniform(0.5, 2.0, size=shape) for shape in ((500, 200), (500, 10), (10, 200)))

    def by_hand(p: Any) -> Any:
        ratio = 1 - x / (p @ h)
        return divergence(x, p, h, 1), ratio @ h.T

    return Program(lambda p: divergence(x, p, h, 1), w, by_hand)


# statsmodels


def _likelihood(name: str, kind: str, counts: str, rows: int = 100_000) -> None:
    def make() -> Program:
        discrete = importlib.import_module("statsmodels.discrete.discrete_model")
        x, mean, w = _regression(rows, 20)
        rng = np.random.default_rng(1)
        y = {"counts": rng.poisson(np.exp(0.3 * mean)), "outcomes": (mean + rng.logistic(size=rows) > 0) * 1.0}[counts]
        model = getattr(discrete, kind)(y, x)
        start = np.append(w * 0.3, 0.5) if kind.startswith("NegativeBinomial") else w * 0.3
        return Program(model.loglike, start, lambda p: (model.loglike(p), model.score(p)))

    ROWS[name] = Row("statsmodels", f"{rows:,} x 20", "its gradient", make)


_likelihood("logit", "Logit", "outcomes")
_likelihood("probit", "Probit", "outcomes")
_likelihood("Poisson regression", "Poisson", "counts")
_likelihood("negative binomial regression", "NegativeBinomial", "counts", 20_000)


@_row("multinomial logit", "statsmodels", "20,000 x 10, 5 outcomes", "its gradient")
def multinomial() -> Program:
    discrete = importlib.import_module("statsmodels.discrete.discrete_model")
    x, _, _ = _regression(20_000, 10)
    model = discrete.MNLogit(np.arange(20_000) * 7 % 5, x)
    start = np.random.default_rng(1).normal(size=40) * 0.1
    return Program(model.loglike, start, lambda p: (model.loglike(p), model.score(p)))


@_row("ordered probit", "statsmodels", "10,000 x 5, 4 outcomes", "differences")
def ordered() -> Program:
    kind = importlib.import_module("statsmodels.miscmodels.ordinal_model").OrderedModel
    x, mean, w = _regression(10_000, 5)
    y = np.digitize(mean + np.random.default_rng(1).normal(size=len(mean)), [-1.0, 0.0, 1.0])
    model = kind(y, x, distr="probit")
    start = np.concatenate([w, [-1.0, 0.1, 0.2]])
    return Program(model.loglike, start, lambda p: (model.loglike(p), differences(model.loglike, p)))


def differences(f: Function, x: Any) -> Any:
    """Return the gradient by central differences of fourth order: what minimizers do where they have none, and better.

    >>> bool(abs(differences(np.sum, np.ones(3)) - 1).max() < 1e-10)
    True
    """
    found = np.empty(x.size)
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = 1e-3 * max(1.0, abs(x.flat[k]))
        step = step.reshape(x.shape)
        ends = [f(x + scale * step) for scale in (-2, -1, 1, 2)]
        found[k] = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * np.abs(step).max())
    return found.reshape(x.shape)


# Others


@_row("GARCH(1, 1)", "arch", "1,000 returns", "differences")
def garch() -> Program:
    recursion = importlib.import_module("arch.univariate.recursions_python").garch_recursion_python
    returns = np.random.default_rng(0).standard_t(6, size=1000)
    bounds = np.tile([1e-6, 1e6], (1000, 1))

    def likelihood(p: Any) -> Any:
        variance = np.zeros(1000)
        recursion(p, returns**2, np.sign(returns), variance, 1, 0, 1, 1000, 1.0, bounds)
        return 0.5 * np.sum(np.log(variance) + returns**2 / variance)

    return Program(likelihood, np.array([0.1, 0.1, 0.8]), lambda p: (likelihood(p), differences(likelihood, p)))


@_row("line shapes", "lmfit", "10,000 points, 4 peaks", "differences")
def shapes() -> Program:
    lines = importlib.import_module("lmfit.lineshapes")
    x = np.linspace(0, 10, 10_000)
    kinds = lines.gaussian, lines.lorentzian, lines.pearson4, lines.skewed_gaussian

    def model(p: Any) -> Any:
        rows = np.reshape(p, (4, 3))
        more: tuple[list[float], ...] = [], [], [0.8, 0.3], [0.8]
        return sum(kind(x, *row, *rest) for kind, row, rest in zip(kinds, rows, more, strict=True))

    start = np.array([1, 2, 0.5, 2, 4, 0.3, 1, 6, 0.7, 2, 8, 0.4])
    data = model(start * 1.05)

    def squares(p: Any) -> Any:
        return np.sum((model(p) - data) ** 2)

    return Program(squares, start, lambda p: (squares(p), differences(squares, p)))


@_row("Kalman filter", "filterpy", "200 measurements, 4 states", "differences")
def kalman() -> Program:
    filters = importlib.import_module("filterpy.kalman")
    seen = np.random.default_rng(0).normal(size=(200, 2))

    def likelihood(p: Any) -> Any:
        model = filters.KalmanFilter(dim_x=4, dim_z=2)
        model.F = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1.0]])
        model.H, model.Q, model.R = np.eye(2, 4), np.exp(p[0]) * np.eye(4), np.exp(p[1]) * np.eye(2)
        total = 0.0
        for z in seen:
            model.predict()
            model.update(z)
            total = total + model.log_likelihood
        return total

    return Program(likelihood, np.array([-1.0, 0.1]), lambda p: (likelihood(p), differences(likelihood, p)))


@_row("image of a Gaussian", "astropy", "256 x 256 pixels", "its gradient")
def image() -> Program:
    kind = importlib.import_module("astropy.modeling.models").Gaussian2D
    y, x = np.mgrid[:256.0, :256.0]
    start = np.array([2.0, 120.0, 130.0, 30.0, 20.0, 0.3])
    data = kind.evaluate(x, y, *(1.02 * start))

    def tool(p: Any) -> Any:
        off = kind.evaluate(x, y, *p) - data
        return np.sum(off**2), np.array([2 * np.sum(off * part) for part in kind.fit_deriv(x, y, *p)])

    return Program(lambda p: np.sum((kind.evaluate(x, y, *p) - data) ** 2), start, tool)


@_row("optimal transport, smooth dual", "POT", "500 x 500", "its gradient")
def transport() -> Program:
    smooth = importlib.import_module("ot.smooth")
    rng = np.random.default_rng(0)
    a, b, cost = np.full(500, 1 / 500), np.full(500, 1 / 500), rng.uniform(size=(500, 500))
    kind = smooth.NegEntropy(gamma=0.1)
    start = np.concatenate([rng.normal(size=500), rng.normal(size=500)]) * 0.05

    def value(p: Any) -> Any:
        return smooth.dual_obj_grad(p[:500], p[500:], a, b, cost, kind)[0]

    def tool(p: Any) -> Any:
        found, left, right = smooth.dual_obj_grad(p[:500], p[500:], a, b, cost, kind)
        return found, np.concatenate([left, right])

    return Program(value, start, tool)


@_row("Sinkhorn distance", "POT", "500 x 500, 50 steps", "differences")
def sinkhorn() -> Program:
    ot = importlib.import_module("ot")
    a, costs = np.full(500, 1 / 500), np.random.default_rng(0).uniform(size=(2, 500, 500))

    def value(p: Any) -> Any:
        cost = p[0] * costs[0] + p[1] * costs[1]
        return ot.sinkhorn2(a, a, cost, 0.1, method="sinkhorn", numItermax=50, stopThr=0.0, warn=False)

    return Program(value, np.array([0.7, 0.4]), lambda p: (value(p), differences(value, p)))


@_row("histogram likelihood", "pyhf", "200 bins, 201 parameters", "JAX")
def histogram() -> Program:
    pyhf, jax = importlib.import_module("pyhf"), importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    signal, noise = rng.uniform(1, 5, size=200).tolist(), rng.uniform(20, 50, size=200).tolist()
    pyhf.set_backend("numpy")
    model = pyhf.simplemodels.uncorrelated_background(signal, noise, [3.0] * 200)
    data = np.concatenate([np.round(np.add(signal, noise)), model.config.auxdata])
    start = np.concatenate([[1.1], rng.uniform(0.9, 1.1, size=200)])

    def tool(p: Any) -> Any:
        pyhf.set_backend("jax")
        try:
            return jax.value_and_grad(lambda q: model.logpdf(q, jax.numpy.asarray(data))[0])(p)
        finally:
            pyhf.set_backend("numpy")

    return Program(lambda p: model.logpdf(p, data)[0], start, tool)


def _survival(name: str, kind: str, size: str) -> None:
    def make() -> Program:
        autograd = importlib.import_module("autograd")
        value_and_grad = autograd.value_and_grad
        rng = np.random.default_rng(0)
        times, seen = rng.weibull(1.5, size=10_000) * 3 + 0.1, rng.uniform(size=10_000) < 0.8
        with optimizers_taken(False):
            lifelines = importlib.import_module("lifelines")
            f, start = captured(lambda: getattr(lifelines, kind)().fit(times, seen))
        return Program(f, start, value_and_grad(f))

    ROWS[name] = Row("lifelines", size, "autograd", make)


_survival("survival, Weibull", "WeibullFitter", "10,000 times")
_survival("survival, log-normal", "LogNormalFitter", "10,000 times")
