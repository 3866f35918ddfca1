"""Plans of thirty functions, kept as text: a changed threshold or price shows as a difference.

python -m tests.golden_plans          compare, and say which differ
python -m tests.golden_plans --accept write them anew; `git diff tests/plans` shows what has changed
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import symad as sa
from benchmarks.problems import chained_rosenbrock, cluster, lennard_jones_energy, make_log_sum_exp, make_network

FOLDER = Path(__file__).parent / "plans"
WIDTH = 140
RANDOM = np.random.default_rng(7)
DATA, LABELS = RANDOM.normal(size=(200, 6)), np.sign(RANDOM.normal(size=200))
WIDE = RANDOM.normal(size=(3, 40, 40)) / 6


def flat_atoms(x):
    """Lennard-Jones over a flat x: three squared differences summed, as they are written in plain Python."""
    total = 0.0
    for i in range(len(x) // 3):
        for j in range(i):
            d = sum((x[3 * i + k] - x[3 * j + k]) ** 2 for k in range(3))
            total = total + 4.0 * (1 / (d * d * d) ** 2 - 1 / (d * d * d))
    return total


def logistic(w):
    return np.sum(np.log1p(np.exp(-LABELS * (DATA @ w))))


def wide_network(x):
    for layer in WIDE:
        x = np.tanh(layer @ x)
    return np.sum(x)


def written_chain(x):
    return sa.sum_over(lambda a, b: 100 * (b - a**2) ** 2 + (1 - a) ** 2, x[:-1], x[1:])


def diffusion(x):
    return np.concatenate([[0.0], x[:-2] - 2 * x[1:-1] + x[2:] + np.exp(x[1:-1]), [0.0]])


def descent(rate):
    x, y = 1.0, 1.5
    for _ in range(300):
        x, y = x - rate * (x - y**2), y - rate * np.sin(x * y)
    return x * y


def scanned(x):
    return sa.scan(lambda state, _: (state - 0.01 * np.sin(state) * state, None), x, None, length=1000)[0] ** 2


def step(x):
    return np.sum(x**2) if x[0] > 0 else np.sum(np.cos(x))


def ruled(x):
    soft = sa.custom_derivative(
        lambda u: np.log1p(np.exp(u)), lambda primals, tangents: tangents[0] / (1 + np.exp(-primals[0]))
    )
    return sum(soft(x[k]) for k in range(len(x)))


def at(size: int) -> Any:
    return np.linspace(0.5, 1.5, size)


NETWORK, LOG_SUM_EXP = make_network(), make_log_sum_exp()
PLANS: dict[str, tuple[Callable[..., Any], Any]] = {
    "rosenbrock-2-hessian": (sa.hessian(chained_rosenbrock), at(2)),
    "rosenbrock-10-hessian": (sa.hessian(chained_rosenbrock), at(10)),
    "rosenbrock-100-value": (chained_rosenbrock, at(100)),
    "rosenbrock-100-gradient": (sa.grad(chained_rosenbrock), at(100)),
    "rosenbrock-100-lower": (sa.hessian(chained_rosenbrock, sparse="lower"), at(100)),
    "rosenbrock-1000-lower": (sa.hessian(chained_rosenbrock, sparse="lower"), at(1000)),
    "rosenbrock-10000-written": (sa.hessian(written_chain, sparse="lower"), at(10_000)),
    "lennard-jones-10-gradient": (sa.grad(lennard_jones_energy), cluster(10)),
    "lennard-jones-10-hessian": (sa.hessian(lennard_jones_energy), cluster(10)),
    "lennard-jones-20-lower": (sa.hessian(lennard_jones_energy, sparse="lower"), cluster(20)),
    "flat-atoms-10-hessian": (sa.hessian(flat_atoms), cluster(10).ravel()),
    "flat-atoms-20-hessian": (sa.hessian(flat_atoms), cluster(20).ravel()),
    "flat-atoms-20-lower": (sa.hessian(flat_atoms, sparse="lower"), cluster(20).ravel()),
    "network-gradient": (sa.grad(NETWORK), at(8)),
    "network-hessian": (sa.hessian(NETWORK), at(8)),
    "network-lower": (sa.hessian(NETWORK, sparse="lower"), at(8)),
    "wide-network-gradient": (sa.grad(wide_network), at(40)),
    "wide-network-hessian": (sa.hessian(wide_network), at(40)),
    "log-sum-exp-gradient": (sa.grad(LOG_SUM_EXP), at(20)),
    "log-sum-exp-hessian": (sa.hessian(LOG_SUM_EXP), at(20)),
    "logistic-value": (logistic, at(6)),
    "logistic-gradient": (sa.value_and_grad(logistic), at(6)),
    "logistic-hessian": (sa.hessian(logistic), at(6)),
    "diffusion-jacobian": (sa.jacobian(diffusion, sparse=True), at(200)),
    "diffusion-dense": (sa.jacobian(diffusion), at(30)),
    "descent-derivative": (sa.derivative(descent), 0.01),
    "scanned-gradient": (sa.grad(scanned), 0.7),
    "step-hessian": (sa.hessian(step), at(6)),
    "ruled-gradient": (sa.grad(ruled), at(50)),
    "scalar-third-derivative": (sa.derivative(lambda t: np.exp(np.sin(t)), 3), 0.7),
}


@contextmanager
def one_machine() -> Iterator[None]:
    """Take a processor with registers of 512 bits for granted: plans depend on how many columns these hold."""
    with patch("codegen.processor.features", lambda: frozenset({"avx2", "fma", "avx512f"})):
        yield


def text_of(name: str) -> str:
    """Return the text of a plan, without what differs between checkouts."""
    f, x = PLANS[name]
    with one_machine():
        found = sa.plan(f, x).text(WIDTH)
    return re.sub(r"(\w+\.py):\d+(-\d+)?", r"\1", found).rstrip() + "\n"


def main() -> int:
    accept = "--accept" in sys.argv
    FOLDER.mkdir(exist_ok=True)
    different = []
    for name in PLANS:
        path, text = FOLDER / f"{name}.txt", text_of(name)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            different.append(name)
            if accept:
                path.write_text(text, encoding="utf-8")
    print("\n".join(different) or "no differences")
    return int(bool(different) and not accept)


if __name__ == "__main__":
    sys.exit(main())
