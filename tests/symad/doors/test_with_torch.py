"""Compiled functions inside PyTorch: the numbers of PyTorch's own derivatives, in every mix of its transforms."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest

import symad as sa
from symad.errors import ArgumentError, RuleError
from tests.support.tool_formulas import FORMULAS, formula, vector

torch = pytest.importorskip("torch", reason="pip install -e '.[torch]'")
pytestmark = [pytest.mark.wide, pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")]
func: Any = torch.func


class Words:
    """The functions of the formulas, by the names that both have."""

    def __init__(self, module: Any) -> None:
        self.sin, self.exp, self.stack, self.sum = module.sin, module.exp, module.stack, module.sum


NUMPY, TORCH = Words(np), Words(torch)


def tensor(*numbers: Any, grad: bool = False) -> Any:
    return torch.tensor(numbers[0] if len(numbers) == 1 else numbers, dtype=torch.float64, requires_grad=grad)


X, A = tensor(0.3, 0.4, 0.5), tensor(1.3)
TRANSFORMS = {
    "value": lambda f: f,
    "jacobian": lambda f: func.jacrev(f, (0, 1)),
    "forward": lambda f: func.jacfwd(f, (0, 1)),
    "hessian": lambda f: func.hessian(f, (0, 1)),
    "mixed": lambda f: func.jacrev(func.jacfwd(func.jacrev(f, 1), 0), 0),
    "third": lambda f: func.jacrev(func.jacrev(func.jacrev(f))),
    "jvp": lambda f: lambda x, a: func.jvp(f, (x, a), (torch.ones_like(x), 2 * a)),
    "vjp": lambda f: lambda x, a: func.vjp(lambda x: f(torch.sin(x), a), x)[0],
    "mapped": lambda f: lambda x, a: func.vmap(func.jacrev(f), (0, None))(torch.stack([x, 2 * x]), a),
    "columns": lambda f: lambda x, a: func.vmap(f, (1, None))(torch.stack([x, 2 * x], 1), a),
    "mapped twice": lambda f: lambda x, a: func.vmap(func.vmap(func.hessian(f), (None, 0)), (0, None))(
        torch.stack([x, 2 * x]), a * torch.arange(4.0, dtype=torch.float64)
    ),
    "of a map": lambda f: func.jacrev(lambda x, a: func.vmap(f, (0, None))(torch.stack([x, a * x]), a), (0, 1)),
}  # fmt: skip


def ours(f: Any) -> Any:
    return sa.to_torch(lambda x, a: f(x, a, NUMPY), np.zeros(3), 1.0)


@pytest.mark.parametrize("f", FORMULAS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_as_torch_itself(f: str, transform: str) -> None:
    found, want = (
        torch.utils._pytree.tree_leaves(TRANSFORMS[transform](g)(X, A))
        for g in (ours(FORMULAS[f]), lambda x, a: FORMULAS[f](x, a, TORCH))
    )
    for part, exact in zip(found, want, strict=True):
        torch.testing.assert_close(part, exact, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("f", FORMULAS)
def test_torchs_own_checks_of_first_and_second_derivatives(f: str) -> None:
    x, a = tensor(0.3, 0.4, 0.5, grad=True), tensor(1.3, grad=True)
    assert torch.autograd.gradcheck(ours(FORMULAS[f]), (x, a), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(ours(FORMULAS[f]), (x, a), check_fwd_over_rev=True)


def test_the_check_finds_a_wrong_derivative() -> None:
    twice = sa.custom_derivative(lambda x: 2.0 * x, lambda primals, tangents: 3.0 * tangents[0])
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(sa.to_torch(twice, 1.0), tensor(0.5, grad=True))


def test_backward_thrice_by_hand() -> None:
    x = tensor(0.7, grad=True)
    value = sa.to_torch(lambda x: np.exp(x) * x, 1.0)(x)
    for order in range(1, 4):
        (value,) = torch.autograd.grad(value, x, create_graph=True)
        assert value.item() == pytest.approx(np.exp(0.7) * (0.7 + order), rel=1e-14)


def test_what_needs_no_gradient_has_none() -> None:
    x, a = tensor(0.3, 0.4, 0.5, grad=True), tensor(1.3)
    f = ours(formula)
    f(x, a).backward()
    assert (a.grad, f(X, a).requires_grad, f(x.detach(), a).grad_fn) == (None, False, None)
    with torch.no_grad():
        assert not f(x, a).requires_grad


def test_many_points_have_the_bits_of_a_batch() -> None:
    points = np.random.default_rng(0).normal(size=(10_000, 3))
    kernel = sa.compile(lambda x, a: formula(x, a, NUMPY), np.zeros(3), 1.0)
    found = func.vmap(ours(formula), (0, None))(torch.from_numpy(points), A)
    assert found.numpy().tobytes() == kernel.batch(points, 1.3).tobytes()
    none = func.vmap(ours(formula), (0, None))(torch.from_numpy(points[:0]), A)
    assert none.shape == (0,)


def test_a_weight_is_fitted_by_torchs_optimiser() -> None:
    class Decay(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rates = torch.nn.Parameter(tensor(1.0, 1.0))
            self.misfit = sa.to_torch(lambda p: np.sum((p[0] * np.exp(-p[1] * t) - y) ** 2), np.ones(2))

        def forward(self) -> Any:
            return self.misfit(self.rates)

    t = np.linspace(0.0, 3.0, 40)
    y = 2.0 * np.exp(-0.7 * t)
    model = Decay()
    optimiser = torch.optim.LBFGS(model.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimiser.zero_grad()
        loss = model()
        loss.backward()
        return loss

    optimiser.step(closure)
    assert model.rates.tolist() == pytest.approx([2.0, 0.7], rel=1e-5)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_compiled_by_torch_too() -> None:
    f = ours(formula)
    whole = torch.compile(lambda x, a: f(2.0 * x, a) ** 2, backend="eager")
    x = X.clone().requires_grad_()
    whole(x, A).backward()
    want = func.grad(lambda x: formula(2.0 * x, A, TORCH) ** 2)(X)
    torch.testing.assert_close(x.grad, want, rtol=1e-13, atol=0)


def test_views_and_lazily_negated_tensors() -> None:
    given = torch.stack([X, -X], 1)[:, 1]
    lazy = torch.view_as_real(torch.complex(X, X).conj().resolve_conj())[:, 0]
    negative = torch.complex(X, X).conj().imag
    assert negative.is_neg()
    f = sa.to_torch(lambda x: 2.0 * x, np.zeros(3))
    for value in (given, lazy, negative):
        assert f(value).tolist() == (2.0 * value).tolist()


def test_no_arguments() -> None:
    assert sa.to_torch(lambda: 2.0)().item() == 2.0


def test_results_are_their_own_memory() -> None:
    f, x = sa.to_torch(lambda x: x, np.zeros(3)), X.clone()
    found = f(x)
    found += 1.0
    assert x.tolist() == X.tolist()


def test_from_many_threads() -> None:
    f, wrong = ours(formula), []
    want = func.grad(lambda x: formula(x, A, TORCH))(X)

    def work() -> None:
        for _ in range(50):
            x = X.clone().requires_grad_()
            f(x, A).backward()
            wrong.extend([x.grad] * (not torch.allclose(x.grad, want, rtol=1e-13)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_containers_and_keywords() -> None:
    def both(p, scale):
        return {"product": scale * p["a"] * p["b"][0], "square": p["a"] ** 2}

    f = sa.to_torch(both, {"a": 1.0, "b": [np.ones(2)]}, 1.0)
    a, b = tensor(2.0, grad=True), tensor([3.0, 1.0], grad=True)
    found = f({"a": a, "b": [b]}, scale=5.0)
    assert found["product"].tolist() == [30.0, 10.0]
    (found["product"].sum() + found["square"]).backward()
    assert (a.grad.item(), b.grad.tolist()) == (24.0, [10.0, 10.0])


def test_numbers_and_arrays_are_made_tensors() -> None:
    f = ours(formula)
    assert f(np.array([0.3, 0.4, 0.5]), 1.3).item() == f(X, A).item() == f([0.3, 0.4, 0.5], A).item()


REFUSED = {
    "single precision": (lambda f: f(X.float(), A), "argument 0: a tensor of torch.float32 on cpu, torch.strided: ker"),
    "whole numbers": (lambda f: f(X, torch.tensor(1)), "argument 1: a tensor of torch.int64 on cpu"),
    "elsewhere": (lambda f: f(X.to("meta"), A), "a tensor of torch.float64 on meta.*convert it"),
    "sparse": (lambda f: f(X.to_sparse(), A), "on cpu, torch.sparse_coo"),
    "shapes": (lambda f: f(torch.stack([X, X]), A), r"shapes \(2, 3\), \(\): the function.*use torch.func.vmap"),
    "fewer": (lambda f: f(X), r"arguments of shapes \(3,\): the function was made for \(3,\), \(\)"),
    "old maps": (
        lambda f: torch.autograd.functional.jacobian(lambda x: f(x, A), torch.stack([X]).flatten(), vectorize=True),
        "a tensor without numbers of its own: .*use torch.func",
    ),
    "complex numbers": (lambda f: f(np.ones(3) * 1j, A), "argument 0: dtype complex128"),
    "labels": (lambda f: f(pd.Series([1.0, 2.0, 3.0]), A), "argument 0: a value of type Series"),
    "containers": (lambda f: f({"x": X}, A), "argument 0: a value of type dict"),
    "kernels": (lambda f: sa.to_torch(sa.compile(lambda x: x, 1.0), 1.0), "a kernel for PyTorch: its derivatives"),
    "examples": (lambda f: sa.to_torch(lambda x: x, 1.0, 2.0), "with 2 example arguments"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(ArgumentError, match=message):
        call(ours(vector))


def test_a_function_without_a_derivative_says_so_in_backward() -> None:
    x = tensor(0.5, grad=True)
    value = sa.to_torch(sa.custom_derivative(lambda x: x * x), 1.0)(x)
    with pytest.raises(RuleError, match="declared with custom_derivative and without a rule"):
        value.backward()


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named '{name}'")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ArgumentError, match=r"PyTorch without torch: No module.*pip install 'symad\[torch\]'"):
        sa.to_torch(lambda x: x, 1.0)
