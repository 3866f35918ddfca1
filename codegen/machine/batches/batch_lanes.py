"""Choose the number of lanes of a batch: the work saved against the cost of transposing."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.lanes import FLOAT64, Lanes, NumberType
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.options import Options
from codegen.pricing.price import busy, longest_way
from codegen.pricing.price_table import NANOSECONDS, kinds, nanoseconds, operations as priced
from codegen.processor import has_fma, vector_bits

LARGEST = 100_000  # operations; beyond this a second compilation costs more than most batches take
FEW, SHORT = 64, 1000  # numbers and rows of straight lines that may fill two registers: they stay in the nearest cache
CALLED = 8.0  # nanoseconds of a call for one point, beside its arithmetic (that of a block of points is one too)
ROOM = 1 << 20  # bytes of workspace of the points that loops run side by side: more waits for memory


def choose_lanes(program: Program, options: Options, operations: Mapping[str, int]) -> Lanes:
    """Return how many points the code for a batch computes side by side.

    As many as a vector register holds where the arithmetic that this saves outweighs bringing every number into lanes
    and back; functions without a formula of ours save nothing but where accuracy "fast" allows those of vectors. Short
    straight lines that wait for themselves longer than they work fill two registers.

    >>> from codegen.ir.program import Input, Output
    >>> program = Program([], [], {}, (Input("x", (100,)),), (Output((100,), ()),))
    >>> choose_lanes(program, Options(), {"add": 100}).width, choose_lanes(program, Options(lanes=4), {}).width
    (1, 4)
    """
    number = options.number
    if options.lanes is not None:
        return number.lanes(options.lanes)
    lanes = _register(number)
    if sum(operations.values()) > LARGEST:
        return number.lanes()
    one_by_one = 0 if options.accuracy == "fast" else _called_one_by_one(program, operations)
    single = _numbers(program, number) == len(program.arguments) + len(program.outputs)
    if single and not one_by_one:  # which need no transposition
        return number.lanes(2 * lanes.width) if _has_to_wait(program, number, lanes.width) else lanes
    arithmetic = nanoseconds_alone(program, operations) - nanoseconds({"call": one_by_one})
    arithmetic += 0.0 if one_by_one else CALLED
    if arithmetic * (1 - 1 / lanes.width) <= nanoseconds_moving(program, number):
        return number.lanes()
    return number.lanes(2 * lanes.width) if _has_to_wait(program, number, lanes.width) else lanes


def takes_blocks(program: Program | RolledProgram, lanes: Lanes, number: NumberType) -> bool:
    """Whether the code for a batch takes many blocks at each call: straight lines of single numbers do."""
    single = _numbers(program, number) == len(program.arguments) + len(program.outputs)
    return single and lanes.width > 1 and isinstance(program, Program) and not program.seeded


def _has_to_wait(program: Program, number: NumberType, width: int) -> bool:
    """Whether the processor has time for a second register, of which there are enough."""
    known = vector_bits() == 512 and number is FLOAT64 and not program.seeded
    if not known or _numbers(program, number) > FEW or len(program) > SHORT:
        return False
    return longest_way(program) > busy(program, width)


def lanes_of_loops(plan: RolledPlan) -> Lanes:
    """Return how many points loops run side by side without a change of bits, 1 if more are no faster."""
    program, options, number = plan.program, plan.options, plan.options.number
    lanes = _register(number) if options.lanes is None else number.lanes(options.lanes)
    alone, written = plan.executed().total(), plan.written_out
    too_large = written > LARGEST or plan.workspace * lanes.width * lanes.size > ROOM
    if number.parts > 1 or lanes.width == 1 or too_large or not plan.has_points:
        return number.lanes()
    saved = nanoseconds({"average": alone}) - nanoseconds({"average": written}) / lanes.width
    return lanes if options.lanes is not None or saved > nanoseconds_moving(program, number) else number.lanes()


def _register(number: NumberType) -> Lanes:
    return number.lanes(vector_bits() // (8 * number.lanes().size))


def nanoseconds_moving(program: Program | RolledProgram, number: NumberType) -> float:
    """Nanoseconds of a point to bring its numbers into lanes and back."""
    return NANOSECONDS["point"] * _numbers(program, number)


def _numbers(program: Program | RolledProgram, number: NumberType) -> int:
    sizes = [array.size for array in program.arguments] + [array.size for array in program.outputs]
    return number.parts * sum(sizes)


def _called_one_by_one(program: Program, operations: Mapping[str, int]) -> int:
    """Return the calls of functions without a formula for lanes."""
    calls = operations.get("call", 0)
    if not calls or not has_fma():
        return calls
    costs = priced(kinds(program, range(len(program))))
    return min(calls, costs["call"] + costs["scipy"])


def nanoseconds_alone(program: Program | RolledProgram, operations: Mapping[str, int]) -> float:
    """Time for one point alone; a sweep repeats its operations for every column."""
    if isinstance(program, RolledProgram):
        return 1.0 + nanoseconds({"average": program.executed})
    columns = program.inputs[-1].size if program.seeded else 1
    return 1.0 + columns * nanoseconds(operations)
