"""The rows of the table: a function that repeats itself, a point, and the derivative that is wanted of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks.problems import chained_rosenbrock, cluster, make_network, network_layers
from benchmarks.structure import problems, references, terms
from benchmarks.structure.entries import Entries
from benchmarks.structure.problems import Function
from benchmarks.structure.terms import Terms

Floats = npt.NDArray[np.float64]
Kind = Literal["value", "gradient", "hessian", "jacobian", "tangent", "product"]
Reference = Callable[[Floats, str], Entries]
KINDS: tuple[Kind, ...] = ("value", "tangent", "gradient", "jacobian", "hessian", "product")  # cheaper ones first
WIDTHS = (64, 16, 16, 1)


@dataclass(frozen=True)
class Family:
    """A function, a point, what it is made of, and its right values.

    `written` names how symad is given it: as plain code ("plain"), or with its loop written down; `twin` is then the
    family of the plain code, if there is one. `smaller` is the family that is tried first.
    """

    name: str
    title: str
    function: Function
    point: Floats
    spread: float
    reference: Reference
    terms: Callable[[], tuple[Terms, ...]] | None = None
    written: str = "plain"
    smaller: str = ""
    twin: str = ""
    steps: int = 0
    size: int = 0  # of the series that it belongs to
    huge: tuple[Kind, ...] = ()  # over a million operations in straight lines


@dataclass(frozen=True)
class Case:
    """One row: the derivative `kind` of the function of a family."""

    family: Family
    kind: Kind

    @property
    def name(self) -> str:
        """The key of the row."""
        return f"{self.family.name}-{self.kind}"

    @property
    def title(self) -> str:
        """The row's first cell."""
        words = {"tangent": "d/d rate", "product": "Hessian-vector", "jacobian": "sparse Jacobian"}
        return f"{self.family.title}, {words.get(self.kind, self.kind)}"

    @property
    def easier(self) -> list[str]:
        """The keys of rows that are tried first: who gives up on one of them is not asked for this one."""
        before = KINDS[: KINDS.index(self.kind)]
        smaller = [f"{self.family.smaller}-{self.kind}"] if self.family.smaller else []
        return [f"{self.family.name}-{kind}" for kind in before] + smaller

    @property
    def twin(self) -> str:
        """The key of the row of the same function, not told, whose peers are the same; or nothing."""
        return f"{self.family.twin}-{self.kind}" if self.family.twin else ""

    @property
    def function(self) -> Function:
        """The plain function."""
        return self.family.function

    @cached_property
    def point(self) -> Floats:
        """The point of the timing; with the direction after it for a product."""
        point = self.family.point[:1] if self.kind == "tangent" else self.family.point
        return np.hstack([point, np.linspace(-1, 1, point.size)]) if self.kind == "product" else point

    def points(self) -> Floats:
        """Return the timing point and one seeded neighbour, one in a row."""
        shift = np.random.default_rng(7).uniform(-1, 1, self.point.size) * self.family.spread
        return np.stack([self.point, self.point + shift * np.where(self.family.steps, self.point, 1.0)])

    def right(self, x: Floats) -> Entries:
        """Return the right entries at a point."""
        return self.family.reference(x, self.kind)


def _summed(name: str, title: str, f: Function, x: Floats, spread: float, parts: Callable[[], tuple[Terms, ...]],
            **more: Any) -> Family:  # fmt: skip
    return Family(name, title, f, x, spread, lambda x, kind: references.of_terms(parts(), x, kind), parts, **more)


def lennard_jones(atoms: int, smaller: str = "") -> Family:
    """Return a cluster of atoms."""
    parts = partial(terms.lennard_jones_terms, 3 * atoms)
    title = f"Lennard-Jones, {atoms} atoms"
    return _summed(
        f"lj{atoms}",
        title,
        problems.lennard_jones,
        cluster(atoms),
        0.02,
        parts,
        smaller=smaller,
        size=atoms,
        huge=("hessian",) if atoms > 100 else (),
    )


def rosenbrock(power: int, written: str = "plain") -> Family:
    """Return the chain of 10^power variables."""
    name = f"rosenbrock{power}" + ("" if written == "plain" else f"-{written}")
    title = f"chained Rosenbrock, 10^{power}" + ("" if written == "plain" else f", `{written}`")
    return chain(10**power, name, title, written, f"rosenbrock{power - 1}" if power > 2 else "")


def chain(size: int, name: str, title: str, written: str = "plain", smaller: str = "") -> Family:
    """Return the chained Rosenbrock function of any size."""
    x = np.random.default_rng(1).uniform(-1, 1, size)
    parts = partial(terms.rosenbrock_terms, size)
    return _summed(name, title, chained_rosenbrock, x, 0.3, parts, written=written, smaller=smaller, size=size,
                   huge=KINDS if size > 10**5 else ())  # fmt: skip


def logistic(rows: int, columns: int, written: str = "plain", smaller: str = "") -> Family:
    """Return the loss of a logistic regression."""
    data, labels = problems.logistic_data(rows, columns)
    parts, right = partial(terms.logistic_terms, data, labels), partial(references.of_logistic, data, labels)
    name = f"logistic{rows}x{columns}" + ("" if written == "plain" else f"-{written}")
    title = f"logistic regression, {rows} x {columns}" + ("" if written == "plain" else f", `{written}`")
    weights = np.random.default_rng(6).normal(size=columns) / 4
    f = problems.make_logistic_loss(data, labels)
    twin = f"logistic{rows}x{columns}" if written != "plain" else ""
    huge = KINDS if rows > 1000 else ()
    return Family(name, title, f, weights, 0.2, right, parts, written, smaller, twin, size=rows, huge=huge)


def momentum(power: int, rate: float, written: str = "plain", smaller: str = "") -> Family:
    """Return 10^power steps of gradient descent with momentum; slow enough that the end still depends on the start."""
    steps = 10**power
    point = np.array([rate, 0.9, -1.2, 1.0])
    reference = partial(references.of_momentum, steps)
    name = f"momentum{power}" + ("" if written == "plain" else f"-{written}")
    title = f"momentum, 10^{power} steps" + ("" if written == "plain" else f", `{written}`")
    f = problems.make_momentum(steps)
    return Family(name, title, f, point, 0.01, reference, written=written, smaller=smaller, steps=steps, size=steps,
                  huge=KINDS if power > 4 else ())  # fmt: skip


def network() -> Family:
    """Return the network in its inputs."""
    x = np.random.default_rng(8).normal(size=WIDTHS[0])
    reference = partial(references.of_network, network_layers(WIDTHS))
    return Family("mlp", f"tanh network {'-'.join(map(str, WIDTHS))}", make_network(WIDTHS), x, 0.3, reference)


def grid(data: problems.Grid) -> Family:
    """Return the state estimation of an electric grid."""
    rng = np.random.default_rng(12)
    x = np.hstack([rng.uniform(-0.3, 0.3, data.buses), rng.uniform(0.95, 1.05, data.buses)])
    title = f"power flow, {len(data.lines)} lines + {len(data.transformers)} transformers + {data.buses} buses"
    return _summed("grid", title, problems.make_grid_misfit(data), x, 0.05, lambda: terms.grid_terms(data))


def reaction_1d(size: int) -> Family:
    """Return a reaction with diffusion on a line."""
    x, parts = np.random.default_rng(9).uniform(-1, 1, size), partial(terms.reaction_1d_terms, size)
    return _summed("reaction1d", f"reaction-diffusion, {size}", problems.reaction_1d, x, 0.3, parts, size=size)


def reaction_2d(side: int) -> Family:
    """Return a reaction with diffusion on a square grid."""
    x, parts = np.random.default_rng(9).uniform(-1, 1, side**2), partial(terms.reaction_2d_terms, side**2)
    title = f"reaction-diffusion, {side} x {side}"
    return _summed("reaction2d", title, problems.reaction_2d, x, 0.3, parts, size=side**2)


def tiny() -> Case:
    """Return the small row that a library is started with."""
    return Case(chain(150, "rosenbrock-tiny", "tiny"), "hessian")


def make_cases() -> dict[str, Case]:
    """Return all rows by name, smaller members of a family first."""
    line, square = reaction_1d(1000), reaction_2d(32)
    small = "logistic200x6"
    rows: list[tuple[Family, tuple[Kind, ...]]] = [
        *((lennard_jones(n, f"lj{m}" if m else ""), ("gradient", "hessian")) for m, n in ((0, 10), (10, 20), (20, 50),
                                                                                          (50, 200))),
        *((rosenbrock(power), ("hessian",)) for power in (2, 3, 4, 5)),
        (rosenbrock(6, "sum_over"), ("hessian",)),
        (logistic(200, 6), ("value", "gradient", "hessian")),
        (logistic(100_000, 20, smaller=small), ("value", "gradient", "hessian")),
        (logistic(100_000, 20, "sum_over", small), ("value", "gradient", "hessian")),
        (line, ("value", "jacobian")),
        (square, ("value", "jacobian")),
        (network(), ("gradient", "product")),
        (grid(problems.make_grid()), ("value", "gradient", "hessian")),
        (momentum(3, 5e-4), ("value", "tangent", "gradient")),
        (momentum(5, 1e-6, "scan", "momentum3"), ("value", "tangent", "gradient")),
    ]  # fmt: skip
    cases = [Case(family, kind) for family, kinds in rows for kind in kinds]
    return {case.name: case for case in cases}


def make_series() -> dict[str, list[Case]]:
    """Return families of growing size, by title: the Hessians of sums, the gradients of chains."""
    steps = [Case(momentum(power, 1e-6, "scan"), "gradient") for power in (2, 3, 4, 5)]
    return {
        "Lennard-Jones, Hessian, by atoms": [Case(lennard_jones(n), "hessian") for n in (10, 20, 50, 100, 200)],
        "chained Rosenbrock, Hessian, plain slices": [Case(rosenbrock(p), "hessian") for p in (2, 3, 4, 5)],
        "chained Rosenbrock, Hessian, `sum_over`": [
            Case(rosenbrock(power, "sum_over"), "hessian") for power in (2, 3, 4, 5, 6)
        ],
        "momentum, gradient, `scan`": steps,
    }


def case_named(name: str) -> Case:
    """Return a row, or a member of a series."""
    series = {case.name: case for cases in make_series().values() for case in cases}
    return (make_cases() | series)[name]
