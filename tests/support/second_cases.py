"""Rolled programs by hand, and what their second derivatives are by the flat way."""

import numpy as np

import symad as sa
from codegen.evaluation.interpret import evaluate
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram
from codegen.ir.tables import table
from codegen.ir.unroll import unroll
from symad.derivatives.loops.body_derivatives import body_program
from tests.support.derive_flat import flat_function as flat_of


class Rolled:
    """Buffers and regions written down one after the other."""

    def __init__(self, *shapes):
        self.inputs = tuple(Input(f"x{k}", shape) for k, shape in enumerate(shapes))
        self.buffers = [Buffer("input", array.size) for array in self.inputs]
        self.steps = []

    def workspace(self, size):
        self.buffers.append(Buffer("workspace", size))
        return len(self.buffers) - 1

    def constants(self, values):
        values = np.ascontiguousarray(values, dtype=float)
        self.buffers.append(Buffer("constant", len(values), values))
        return len(self.buffers) - 1

    def region(self, function, reads, writes):
        """`reads` are (buffer, places); `writes` are (kind, buffer, places) of the outputs, ~0 for output 0."""
        reads = [(buffer, np.atleast_1d(places)) for buffer, places in reads]
        count = max(len(places) for _, places in reads)
        body = body_program(function, len(reads))
        gathers = tuple(Gather(buffer, table(np.resize(places, count))) for buffer, places in reads)
        results = tuple(
            Result(k, buffer, table(np.resize(np.atleast_1d(places), count)), kind)
            for k, (kind, buffer, places) in enumerate(writes)
        )
        self.steps.append(Region(body, count, gathers, results))

    def program(self, *shapes):
        first = len(self.buffers)
        steps = tuple(
            Region(
                step.body, step.count, step.gathers,
                tuple(Result(r.output, r.buffer if r.buffer >= 0 else first + ~r.buffer, r.table, r.kind)
                      for r in step.results),
            )
            for step in self.steps
        )  # fmt: skip
        outputs = tuple(Output(shape, ()) for shape in shapes)
        buffers = (*self.buffers, *(Buffer("output", output.size) for output in outputs))
        return RolledProgram(self.inputs, outputs, buffers, steps, "case")


def numbers_of(rolled, arguments):
    """The flat outputs of a rolled program, by unrolling it."""
    flat = unroll(rolled)
    values = dict(enumerate(np.concatenate([np.ravel(argument) for argument in arguments]).tolist()))
    found = []
    for output in flat.outputs:
        wanted = evaluate(flat, list(output.rows), values)
        data = np.zeros(output.size)
        data[slice(None) if output.positions is None else list(output.positions)] = wanted
        found.append(data.reshape(output.shape))
    return found


def flat_function(rolled, wrt, arguments):
    """The rolled program as a function of one array, all in straight lines: a list of its flat outputs."""
    function = flat_of(rolled)

    def of_array(x):
        given = [x if k == wrt else argument for k, argument in enumerate(arguments)]
        found = function(*(np.reshape(a, array.shape) for a, array in zip(given, rolled.inputs, strict=True)))
        return [value for array in found for value in np.ravel(array)]

    return of_array


def points_of(rolled, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=array.shape) + 1.5 for array in rolled.inputs]


def flat_hessian(rolled, wrt, arguments):
    """The lower triangle by the flat way, as a dictionary of places."""
    function = flat_function(rolled, wrt, arguments)
    found = sa.hessian(lambda x: function(x)[0], sparse="lower")(np.ravel(arguments[wrt]))
    return dict(zip(zip(found.rows.tolist(), found.columns.tolist(), strict=True), found.data.tolist(), strict=True))


def flat_jacobian(rolled, wrt, arguments):
    function = flat_function(rolled, wrt, arguments)
    found = sa.jacobian(lambda x: np.stack(function(x)), sparse=True)(np.ravel(arguments[wrt]))
    return dict(zip(zip(found.rows.tolist(), found.columns.tolist(), strict=True), found.data.tolist(), strict=True))


def lennard_jones(atoms):
    made = Rolled((atoms, 3))
    i, j = np.triu_indices(atoms, 1)

    def pair(xi, yi, zi, xj, yj, zj):
        r2 = (xi - xj) ** 2 + (yi - yj) ** 2 + (zi - zj) ** 2
        s6 = 1 / r2**3
        return (4 * (s6 * s6 - s6),)

    reads = [(0, 3 * i), (0, 3 * i + 1), (0, 3 * i + 2), (0, 3 * j), (0, 3 * j + 1), (0, 3 * j + 2)]
    made.region(pair, reads, [("add", ~0, 0)])
    return made.program(())


def rosenbrock(n):
    made, k = Rolled((n,)), np.arange(n - 1)
    made.region(lambda a, b: (100 * (b - a**2) ** 2 + (1 - a) ** 2,), [(0, k), (0, k + 1)], [("add", ~0, 0)])
    return made.program(())


def logistic(samples, features, seed=0):
    generator = np.random.default_rng(seed)
    made, k = Rolled((features,)), np.arange(samples)
    columns = [made.constants(generator.normal(size=samples)) for _ in range(features)]
    label = made.constants(np.where(generator.random(samples) < 0.5, -1.0, 1.0))

    def loss(y, *slots):
        score = sum(a * w for a, w in zip(slots[:features], slots[features:], strict=True))
        return (np.log1p(np.exp(-y * score)),)

    reads = [(label, k), *((column, k) for column in columns), *((0, f) for f in range(features))]
    made.region(loss, reads, [("add", ~0, 0)])
    return made.program(())


def accidents(seed=3):
    """Pairs of any places, equal ones among them, in any order."""
    made = Rolled((6,))
    i, j = np.random.default_rng(seed).integers(0, 6, (2, 20))
    made.region(lambda a, b: (np.sin(a * b) + a**2 * b,), [(0, i), (0, j)], [("add", ~0, 0)])
    return made.program(())


def weighted_sum(n):
    """Two sums of different bodies, combined linearly with a number and with a parameter."""
    made, k = Rolled((n,), ()), np.arange(n)
    sums = made.workspace(2)
    made.region(lambda a: (a**4,), [(0, k)], [("add", sums, 0)])
    made.region(lambda a, b: (np.exp(a * b),), [(0, k[:-1]), (0, k[1:])], [("add", sums, 1)])
    made.region(lambda u, v, p, a: (0.5 * u + p * v + a**3,), [(sums, 0), (sums, 1), (1, 0), (0, 2)],
                [("store", ~0, 0)])  # fmt: skip
    return made.program(())


def log_sum_exp(n):
    made, k = Rolled((n,)), np.arange(n)
    total = made.workspace(1)
    made.region(lambda a: (np.exp(a),), [(0, k)], [("add", total, 0)])
    made.region(lambda z: (np.log(z),), [(total, 0)], [("store", ~0, 0)])
    return made.program(())


def root_of_sum(n):
    made, k = Rolled((n,)), np.arange(n)
    total = made.workspace(1)
    made.region(lambda a, b: ((a - b) ** 2 + 1,), [(0, k[:-1]), (0, k[1:])], [("add", total, 0)])
    made.region(lambda z, a: (np.sqrt(z) * a,), [(total, 0), (0, 0)], [("store", ~0, 0)])
    return made.program(())


def product_of_sums(n):
    made, k = Rolled((n,)), np.arange(n)
    sums = made.workspace(2)
    made.region(lambda a: (a**2,), [(0, k[: n // 2])], [("add", sums, 0)])
    made.region(lambda a: (np.sin(a),), [(0, k[n // 2 :])], [("add", sums, 1)])
    made.region(lambda u, v: (u * v,), [(sums, 0), (sums, 1)], [("store", ~0, 0)])
    return made.program(())


def variance(n):
    """A sum whose body reads another sum."""
    made, k = Rolled((n,)), np.arange(n)
    sums = made.workspace(2)
    mean = made.workspace(1)
    made.region(lambda a: (a,), [(0, k)], [("add", sums, 0)])
    made.region(lambda z: (z / n,), [(sums, 0)], [("store", mean, 0)])
    made.region(lambda a, m: ((a - m) ** 2 * np.exp(m / 5),), [(0, k), (mean, 0)], [("add", sums, 1)])
    made.region(lambda z: (np.log(z),), [(sums, 1)], [("store", ~0, 0)])
    return made.program(())


def shared_map(n):
    """A map that is read twice by a sum, with a border of constants and one of nothing."""
    made, k = Rolled((n,)), np.arange(n)
    values, ends = made.workspace(n + 2), made.constants([2.0])
    made.region(lambda a: (np.sin(a),), [(0, k)], [("store", values, k + 1)])
    made.region(lambda c: (c,), [(ends, 0)], [("store", values, n + 1)])
    k = np.arange(n + 1)
    made.region(lambda a, b: ((a - b) ** 2 * b,), [(values, k), (values, k + 1)], [("add", ~0, 0)])
    return made.program(())


def perceptron(inputs, hidden, samples=3):
    """Two layers; all weights are one array. The sum over samples is in the body."""
    generator = np.random.default_rng(5)
    size = hidden * inputs + 2 * hidden + 1
    made, k = Rolled((size,)), np.arange(hidden)
    data = made.constants(generator.normal(size=samples * inputs))
    layer = made.workspace(hidden * samples)
    total = made.workspace(samples)
    for s in range(samples):

        def neuron(*slots):
            weights, given, bias = slots[:inputs], slots[inputs : 2 * inputs], slots[-1]
            return (np.tanh(sum(w * x for w, x in zip(weights, given, strict=True)) + bias),)

        reads = [(0, k * inputs + c) for c in range(inputs)] + [(data, np.full(hidden, s * inputs + c)) for c in
                                                                range(inputs)]  # fmt: skip
        made.region(neuron, [*reads, (0, hidden * inputs + k)], [("store", layer, s * hidden + k)])
        made.region(lambda h, w: (h * w,), [(layer, s * hidden + k), (0, hidden * inputs + hidden + k)],
                    [("add", total, s)])  # fmt: skip
    s = np.arange(samples)
    made.region(lambda y, b: ((y + b - 1) ** 2,), [(total, s), (0, size - 1)], [("add", ~0, 0)])
    return made.program(())


def reaction_diffusion(n):
    made, k = Rolled((n,)), np.arange(1, n - 1)
    made.region(lambda a, b, c: (a - 2 * b + c + b - b**3,), [(0, k - 1), (0, k), (0, k + 1)], [("store", ~0, k)])
    made.region(lambda a, b: (a, b - a), [(0, 0), (0, n - 1)], [("store", ~0, 0), ("store", ~0, n - 1)])
    return made.program((n,))


def reaction_diffusion_plane(n):
    made = Rolled((n, n))
    i, j = (grid.ravel() for grid in np.meshgrid(np.arange(1, n - 1), np.arange(1, n - 1), indexing="ij"))
    k = i * n + j
    made.region(
        lambda u, v, w, a, b: (u + v + w + a - 4 * b + np.sin(b),),
        [(0, k - n), (0, k + n), (0, k - 1), (0, k + 1), (0, k)], [("store", ~0, k)],
    )  # fmt: skip
    border = np.setdiff1d(np.arange(n * n), k)
    made.region(lambda a: (a**2,), [(0, border)], [("store", ~0, border)])
    return made.program((n, n))


def powers(n):
    """Exponents that are data: 1, 2, 3 and 2.5, of which the first has no second derivative."""
    made, k = Rolled((n,)), np.arange(n)
    exponents = made.constants(np.array([1.0, 2.0, 3.0, 2.5])[k % 4])
    made.region(lambda a, c: (a**c,), [(0, k), (exponents, k)], [("add", ~0, 0)])
    return made.program(())


def normalised(n):
    """Each number by the sum of all, and the sum of squares of the results: two outputs."""
    made, k = Rolled((n,)), np.arange(n)
    total = made.workspace(1)
    made.region(lambda a: (np.exp(a),), [(0, k)], [("add", total, 0)])
    made.region(lambda a, z: (np.exp(a) / z, a / z), [(0, k), (total, 0)], [("store", ~0, k), ("add", ~1, 0)])
    return made.program((n,), ())


def sums_of_neighbours(n):
    """Every place is added to twice, and a number is read twice at the border."""
    made, k = Rolled((n,)), np.arange(n)
    made.region(lambda a, b: (a * b, a + b), [(0, k), (0, np.minimum(k + 1, n - 1))],
                [("add", ~0, k), ("add", ~0, (k + 1) % n)])  # fmt: skip
    return made.program((n,))


SCALARS = {
    "Lennard-Jones 5": lambda: lennard_jones(5),
    "Rosenbrock": lambda: rosenbrock(12),
    "logistic": lambda: logistic(20, 3),
    "logistic, wide": lambda: logistic(20, 11),
    "logistic, wide and few": lambda: logistic(9, 14),
    "accidents": accidents,
    "weighted sums": lambda: weighted_sum(36),
    "log-sum-exp": lambda: log_sum_exp(36),
    "log-sum-exp of few": lambda: log_sum_exp(9),
    "root of a sum": lambda: root_of_sum(36),
    "product of sums": lambda: product_of_sums(68),
    "product of short sums": lambda: product_of_sums(8),
    "variance": lambda: variance(36),
    "variance of few": lambda: variance(7),
    "shared map": lambda: shared_map(9),
    "perceptron": lambda: perceptron(2, 3, 2),
    "wider perceptron": lambda: perceptron(7, 3, 1),
}
MAPS = {
    "normalised": lambda: normalised(5),
    "sums of neighbours": lambda: sums_of_neighbours(6),
    "reaction-diffusion": lambda: reaction_diffusion(12),
    "reaction-diffusion in the plane": lambda: reaction_diffusion_plane(6),
}
