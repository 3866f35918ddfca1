"""What a loop of the way there has computed is read by the loop of the way back; nothing is shared in nests."""

import numpy as np
import sympy as sp

from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Gather, Nest, Region, Result, RolledProgram, regions_of
from codegen.ir.strictness import checked
from codegen.ir.tables import Affine
from codegen.loops.optimise.common_rows import share

N, ROUNDS = 8, 5
X, Y = sp.symbols("x y")
SINE = program_from_sympy([X], [sp.exp(sp.sin(X))])
BOTH = program_from_sympy([X, Y], [sp.exp(sp.sin(X)) * Y])
RNG = np.random.default_rng(0)


def there_and_back(read=0, size=N):
    """exp(sin(x)) of the input; then its product with a number of the input."""
    whole = Affine(0, 1, size)
    first = Region(SINE, size, (Gather(0, whole),), (Result(0, 1, whole, "store"),))
    reads = Gather(0, Affine(read, 1, size)), Gather(0, Affine(0, 0, size))
    second = Region(BOTH, size, reads, (Result(0, 2, whole, "store"),))
    arrays = (Input("x", (2 * size,)),), (Output((size,), ()), Output((size,), ()))
    buffers = Buffer("input", 2 * size), Buffer("output", size), Buffer("output", size)
    return RolledProgram(*arrays, buffers, (first, second))


def heads(program):
    return [head for region, _ in regions_of(program.steps) for head in region.body.heads]


def assert_same(made, program):
    x = RNG.normal(size=program.inputs[0].size)
    checked(made, "sharing")
    for one, other in zip(evaluate_rolled(made, [x]), evaluate_rolled(program, [x]), strict=True):
        assert one.tobytes() == other.tobytes()


def test_what_is_stored_is_read():
    program = there_and_back()
    made = share(program)
    assert heads(program).count(sp.exp) == 2
    assert heads(made).count(sp.exp) == 1
    assert_same(made, program)


def test_what_is_not_stored_is_kept():
    program = there_and_back()
    first, second = program.steps
    only_sum = Result(0, 1, Affine(0, 1, N), "add")
    changed = RolledProgram(
        program.inputs, program.outputs, program.buffers, (Region(SINE, N, first.gathers, (only_sum,)), second)
    )
    made = share(changed)
    assert heads(made).count(sp.exp) == 1
    assert [buffer.size for buffer in made.buffers if buffer.kind == "workspace"] == [N]
    assert_same(made, changed)


def test_other_places_are_not_read():
    program = there_and_back(read=N)
    assert share(program) is program


def test_what_rounds_store_again_is_not_taken_for_what_it_was():
    """Both nests read a place that is stored in every round: the second would find what the last round left."""
    up = Affine(0, 1, N, (N,))
    whole = Affine(0, 1, N)
    square = program_from_sympy([X], [X**2 + 1])
    fill = Region(square, N, (Gather(0, up),), (Result(0, 1, whole, "store"),))
    first = Region(SINE, N, (Gather(1, whole),), (Result(0, 2, up, "store"),))
    second = Region(BOTH, N, (Gather(1, whole), Gather(0, up)), (Result(0, 3, up, "store"),))
    size = N * ROUNDS
    buffers = Buffer("input", size), Buffer("workspace", N), Buffer("output", size), Buffer("output", size)
    arrays = (Input("x", (size,)),), (Output((size,), ()), Output((size,), ()))
    program = RolledProgram(*arrays, buffers, (Nest(ROUNDS, (fill, first)), Nest(ROUNDS, (second,))))
    assert share(program) is program
    turned = RolledProgram(*arrays, buffers, (Nest(ROUNDS, (fill, first, second)),))
    assert_same(share(turned), turned)
