"""trace_structured: each body once, as a loop between nodes, which computes what the loop computes when carried out."""

import pickle
import random

import numpy as np
import pytest
import sympy as sp

import symad as sa
import symad.tracing.values.containers as containers
from codegen.evaluation.interpret import evaluate
from codegen.loops.loop import is_nodes
from symad import cond, fori_loop, scan, sum_over, vmap, while_loop
from symad.tracing.trace import trace_structured

A = np.array([[0.3, -1.2, 0.5], [0.7, 0.4, -0.8], [-0.5, 0.9, 1.5], [1.1, 0.2, -0.1]])
B = np.array([0.5, -0.25, 0.75, 1.25])
X = np.array([0.4, -0.6, 1.1])
LONG = np.array([0.3, -0.9, 0.8, 0.1, -0.4, 1.2])
PAIRS = np.array([(i, j) for i in range(3) for j in range(i)])


def run(traced, args):
    """Evaluate a structured trace: its loops in order, repetition by repetition."""
    graph, values = traced.graph, {}
    for nodes, leaf in zip(traced.inputs.arrays, containers.flatten(args)[0], strict=True):
        values |= dict(zip(nodes.ravel().tolist(), np.ravel(np.asarray(leaf, float)).tolist(), strict=True))

    def read(nodes):
        return nodes.tolist() if not is_nodes(nodes) else evaluate(graph, nodes.ravel().tolist(), values)

    for loop in traced.loops:
        columns, initial = [read(column) for column in loop.reads], [read(use.initial) for use in loop.carries]
        history = []
        for k in range(loop.count):
            pairs = zip(loop.carries, initial, strict=True)
            carried = [first[k] if k < len(first) else history[-len(first)][use.output] for use, first in pairs]
            slots = dict(enumerate([*(column[k] for column in columns), *carried]))
            history.append(evaluate(loop.body, [output.rows[0] for output in loop.body.outputs], slots))
            if loop.stop is not None and history[-1][loop.stop]:
                break
        for use in loop.results:
            found = [step[use.output] for step in history]
            found = found if use.kind in ("each", "add") else [sum(found) if use.kind == "sum" else found[-1]]
            if use.kind == "add":
                values |= dict.fromkeys(use.nodes.tolist(), 0.0)
            for node, value in zip(use.nodes.tolist(), map(float, found), strict=True):
                values[node] = value + (values[node] if use.kind == "add" else 0.0)
    arrays = [np.array(read(nodes), float).reshape(nodes.shape) for nodes in traced.outputs.arrays]
    return containers.unflatten(traced.outputs.structure, arrays)


def kept(x):
    buffer = np.zeros_like(x)

    def body(row):
        buffer[0] = buffer[0] + x[1]
        return row @ x

    return sum_over(body, A), buffer


def drawn(x):
    generator = np.random.default_rng(3)
    return sum_over(lambda a: a * x * generator.normal(), B)


def two_carried(a, row):
    return scan(lambda c, b: ((c[1], c[0] * b + a), None), (a, 1), row)[0][1]


def newton(x):
    return while_loop(lambda r: abs(r * r - x) > 1e-12, lambda r: (r + x / r) / 2, x, max_steps=12)


def consumed(x):
    weights = iter([1.0, 2.0, 3.0, 4.0])
    return sum_over(lambda b: b * x * next(weights), B)


def shuffled(x):
    generator, state = random.Random(1), np.random.RandomState(2)
    return sum_over(lambda b: b * x * generator.random() + state.rand(), B)


# name: (function, argument, the counts of its loops, the operations of their bodies, at most)
CASES = {
    "sum": (lambda x: sum_over(lambda row, b: np.log(1 + np.exp(-b * (row @ x))), A, B), X, [4], 12),
    "sum of containers": (lambda x: sum_over(lambda b: {"a": b * x, "b": (x.sum(), b > 0)}, B), X, [4], 8),
    "sum over its argument": (lambda x: sum_over(lambda u: u * u, x) * x[0], X, [3], 1),
    "map": (lambda x: vmap(lambda row: (row * x, row @ x, 1.0))(A), X, [4], 9),
    "map of truths": (lambda x: vmap(lambda row: row @ x > 0)(A), X, [4], 9),
    "map to other axes": (lambda x: vmap(lambda row: np.outer(row, x), out_axes=1)(A), X, [4], 9),
    "map along an axis": (lambda x: vmap(lambda column, u: column * u, in_axes=(1, None))(A, x[0]), X, [3], 4),
    "nested maps": (lambda x: vmap(vmap(np.multiply, in_axes=(None, 0)), in_axes=(0, None))(x, x), X, [9, 3], 1),
    "sums of sums": (lambda x: sum_over(lambda u: sum_over(lambda v: np.sin(u * v), x), x), X, [9, 3], 2),
    "maps of sums of maps": (
        lambda x: vmap(lambda row: sum_over(lambda u: vmap(lambda v: u * v * row @ row)(x).sum() + u, row * x))(A),
        X, [4, 36, 12, 4], 40),
    "an inner loop over numbers": (lambda x: vmap(lambda u: sum_over(lambda b: np.sin(b * u), B))(x), X, [12, 3], 2),
    "an inner loop that is the same": (lambda x: vmap(lambda u: u * sum_over(np.sin, x))(x), X, [3, 3], 2),
    "inner loops that are equal": (
        lambda x: sum_over(np.sin, x) + sum_over(lambda u: u * sum_over(np.sin, x), x), X, [3, 3], 3),
    "inner chains": (lambda x: vmap(lambda u: scan(lambda c, b: (c * u + b, c), u, B))(x), X, [12, 3], 2),
    "inner chains from numbers": (
        lambda x: sum_over(lambda k: fori_loop(0, 4, lambda j, c: np.sin(c * x[k] + j), k), range(3)), X, [12, 3], 3),
    "chains in chains in a map": (
        lambda x: vmap(lambda u: fori_loop(0, 3, lambda k, c: fori_loop(0, 2, lambda j, d: d * u + j, c), 1.0))(x),
        X, [9, 3], 4),
    "inner chains that carry two, and sums of them": (
        lambda x: vmap(lambda row: sum_over(lambda a: two_carried(a, row * x), x) * row[0])(A), X, [4, 36, 12, 4], 9),
    "inner while loops": (lambda x: vmap(newton)(x**2), X, [3, 36, 3], 15),
    "x[j - i]": (lambda x: sum_over(lambda i: sum_over(lambda j: x[i] * x[j - i], range(3)), range(3)), X, [3], 12),
    "x[i], x[j] and numbers": (
        lambda x: sum_over(lambda i: sum_over(lambda j: x[i] * x[j + 1], range(2)) * i, range(3)), X, [6, 3], 2),
    "inner counts": (lambda x: sum_over(lambda i: i * sum_over(lambda j: j * i, range(4)) * x[i], range(3)), X, [12, 3],
                     4),
    "maps to vectors": (lambda x: vmap(lambda row: vmap(lambda u: np.array([u, u * x[0]]) * row[0])(row))(A), X,
                        [12, 4], 3),
    "map of gradients": (lambda x: vmap(sa.grad(lambda u: np.sin(u) * x[0] * u))(x), X, [3], 8),
    "sum of third derivatives": (lambda x: sum_over(sa.derivative(np.sin, order=3), x), X, [3], 4),
    "scan": (lambda x: scan(lambda c, row: ((c[0] * x[0] + row[1], c[1] - c[0]), c[1]), (x[1], 2), A), X, [4], 5),
    "scan backward": (lambda x: scan(lambda c, b: (c * x[0] + b, c), 1, B, reverse=True), X, [4], 2),
    "scan without xs": (lambda x: scan(lambda c, _: (np.sin(c), None), x, length=9)[0], X, [9], 3),
    "what is carried unchanged": (lambda x: scan(lambda c, b: ((c[0] * c[1], c[1]), b), (1.0, x), B), 0.3, [4], 1),
    "what is carried across": (lambda x: fori_loop(0, 5, lambda k, c: (c[1], c[0] * x), (x, 2 * x)), 0.3, [5], 1),
    "what two carries become": (lambda x: fori_loop(0, 5, lambda k, c: (c[0], c[0]), (x, 2 * x)), 0.3, [5], 0),
    "fori_loop": (lambda x: fori_loop(1, 6, lambda k, c: c * x + k, x), 0.3, [5], 2),
    "x[k]": (lambda x: fori_loop(0, 5, lambda k, s: s + (x[k + 1] - x[k] ** 2) ** 2, 0.0), LONG, [5], 6),
    "x[-k - 1], x[2 * k % 6]": (lambda x: sum_over(lambda k: x[-k - 1] * x[2 * k % 6], range(6)), LONG, [6], 1),
    "pairs": (lambda x: sum_over(lambda p: (x[p[0]] - x[p[1]]) ** 2 + x[p].sum(), PAIRS), X, [3], 6),
    "rows and parts": (lambda x: vmap(lambda k: x[k, 1:] * x[0, -k])(range(3)), np.outer(X, X), [3], 2),
    "a table of indices": (lambda x: sum_over(lambda k: x[k] if k > 0 else 0.0 * x[k], range(6)), LONG, [6], 4),
    "an index beyond the branch": (lambda x: sum_over(lambda k: x[k + 1] if k < 5 else 0.0, range(6)), LONG, [], 0),
    "an index into numbers": (lambda x: sum_over(lambda k: x * B[k], range(4)), 0.3, [], 0),
    "an index made by a level": (lambda x: sum_over(lambda k: sa.grad(lambda z: z[k] ** 2)(x)[k], range(3)), X, [], 0),
    "an index inside of a level": (lambda x: sum_over(lambda k: sa.grad(lambda z: z**2 * x[k])(x[k]), range(3)), X, [3],
                                   4),
    "a condition": (lambda x: sum_over(lambda b: b**2 if b > x else np.sin(b) * x, B), 0.3, [4], 6),
    "cond": (lambda x: scan(lambda c, b: (cond(c > b, np.sqrt, np.square, c * x), c), x, B), 0.3, [4], 8),
    "a loop decides": (lambda x: (lambda s: s if s > 0 else -2 * s)(sum_over(lambda b: b * x, B)), -0.3, [4], 1),
    "while_loop": (newton, 2.0, [12], 14),
    "while_loop that stops": (lambda x: while_loop(lambda r: r < x, lambda r: r * 2, x / 9), 2.0, [2**62], 6),
    "a while_loop of no step": (lambda x: while_loop(lambda r: r > x, lambda r: r * 2, x), 2.0, [2**62], 6),
    "a transform around": (lambda x: sa.grad(lambda z: sum_over(lambda b: z * z * b, B))(x), 0.3, [], 0),
    "masks": (lambda x: sum_over(lambda m, b: np.where(m, b * x, 0.0), B > 0.5, B), 0.3, [4], 4),
    "traced masks": (lambda x: sum_over(lambda m, b: np.where(m, b, 0.0), x * B > 0.1, B), 0.3, [4], 4),
    "numbers only": (lambda x: x * sum_over(lambda b: b * b, B), 0.3, [], 0),
    "equal loops are one": (lambda x: sum_over(lambda b: b * x, B) + sum_over(lambda b: b * x, B), 0.3, [4], 1),
    "a list of arrays": (lambda x: sum_over(lambda p: p[0] * p[1]["b"], [x * B, {"b": B}]), 0.3, [4], 1),
    "an array of traced values": (lambda x: sum_over(lambda u: u * u, np.array([x[0], x[1], 2.0])), X, [3], 1),
    "a body that stores outside": (kept, X, [], 0),
    "a body that draws numbers": (drawn, 0.3, [], 0),
    "a body that draws them in other ways": (shuffled, 0.3, [], 0),
    "a body that uses an iterator up": (consumed, 0.3, [], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_body_is_traced_once(name):
    f, x, counts, operations = CASES[name]
    traced = trace_structured(f, x)
    expected, found = containers.flatten(f(x))[0], containers.flatten(run(traced, (x,)))[0]
    for ours, numpys in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, np.asarray(numpys, float), rtol=1e-12, atol=1e-14)
    assert [loop.count for loop in traced.loops] == counts
    assert sum(bool(operands) for loop in traced.loops for operands in loop.body.operands) <= operations


def test_a_loop_says_where_it_was_written():
    (loop,) = trace_structured(lambda x: sum_over(lambda b: b * x, B), 0.3).loops
    assert loop.origin.startswith("test_constructs_structured.py:")


def test_what_does_not_change_is_computed_outside():
    traced = trace_structured(lambda x: sum_over(lambda b: b * np.exp(x.sum()), B), X)
    (loop,) = traced.loops
    assert sum(map(bool, loop.body.operands)) == 1
    assert len({int(node) for node in loop.reads[1]}) == 1


def test_custom_rules_stay_with_their_nodes():
    @sa.custom_derivative(derivative=lambda primals, tangents: 7 * tangents[0])
    def held(u):
        return u**2

    f = lambda x: sum_over(lambda b: held(b * x), B)  # noqa: E731
    assert trace_structured(f, 0.3).loops == []
    assert sa.compile(sa.grad(f), 0.3)(0.3) == pytest.approx(7 * B.sum())


def test_what_a_body_changed_is_put_back_before_it_is_carried_out():
    table, calls = {"a": 1.0}, []

    def f(x):
        def body(b):
            calls.append(1)
            table["a"] = table["a"] * 2
            return b * x * table["a"]

        return sum_over(body, B)

    expected = f(0.3)
    assert (len(calls), table) == (4, {"a": 16.0})
    table["a"] = 1.0
    calls.clear()
    assert trace_structured(f, 0.3).loops == []
    assert (len(calls), table) == (4, {"a": 16.0})
    assert expected == pytest.approx(0.3 * (B * [2, 4, 8, 16]).sum())


SEEN = []


def test_a_body_that_changes_what_is_global_is_refused():
    f = lambda x: sum_over(lambda b: max(SEEN.append(u) or u for u in (b * x,)), B)  # noqa: E731
    try:
        with pytest.raises(
            sa.errors.TraceError, match=r"test_constructs_structured\.py:\d+: the body of a loop changes SEEN"
        ):
            trace_structured(f, 0.3)
        assert len(SEEN) == 1
        assert sa.compile(f, 0.3, roll="never")(0.5) == 0.5 * B.sum()
    finally:
        SEEN.clear()


def test_large_data_and_a_million_inputs_take_few_nodes_and_symbols():
    data, many = np.ones((100_000, 20)), np.ones(10**6)
    traced = trace_structured(lambda w: sum_over(lambda row: np.log(1 + np.exp(row @ w)), data), np.zeros(20))
    chained = trace_structured(lambda x: sum_over(lambda a, b: (b - a * a) ** 2, x[:-1], x[1:]), many)
    assert [loop.count for loop in (*traced.loops, *chained.loops)] == [100_000, 10**6 - 1]
    assert len(chained.graph) < 10**6 + 100
    assert len(traced.graph) < 1000
    assert dict.__len__(chained.graph.atoms) < 100  # symbols that were made
    assert str(chained.graph.atoms[int(chained.inputs.arrays[0][10**5])]) == "x_100000"


def test_names_of_many_inputs():
    traced = sa.trace(lambda p: p["a"][0] + p["a_0"] + p["b"][999] + p["b"][1500], {
        "a": np.ones(3), "a_0": 1.0, "b": np.ones(2000),
    })  # fmt: skip
    assert str(traced.expr()) == "p_a_0 + p_a_0_ + p_b_1500 + p_b_999"
    copy = pickle.loads(pickle.dumps(traced.graph))
    assert (len(copy.atoms), copy.atoms[traced.inputs.arrays[2][7]].name) == (len(traced.graph.atoms), "p_b_7")
    with pytest.raises(sa.errors.ArgumentError, match="the symbol x_1500 in the traced function"):
        sa.trace(lambda x: x[0] * sp.Symbol("x_1500", real=True), np.ones(2000))
    assert sa.trace(lambda x: x[0] * sp.Symbol("x_2000", real=True), np.ones(2000)).count_ops() == 1
