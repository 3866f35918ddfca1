"""Programs as files: what is written comes back; what nobody can have written is refused, and nothing of it is run."""

from __future__ import annotations

import dataclasses
import pickle
import struct
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from codegen import ArgumentError, Input, LoweringError, Output, Program, compile_program
from codegen.expressions.sympy_in import program_from_sympy
from codegen.functions.intrinsics import INTRINSICS
from codegen.heads import negative_zero
from codegen.ir.sparsity import SparsityPattern
from codegen.machine.storage.portable import KIND, VERSION, decode, encode
from codegen.machine.storage.portable_program import takes
from codegen.options import Options
from codegen.sealed import seal, unseal
from tests.support.kernel_points import OWN_TESTS, points_of

X, Y = sp.symbols("x y", real=True)
EVERY_ATOM = [
    sp.Integer(0), sp.Integer(-7), sp.Integer(3) ** 5000, -(sp.Integer(10) ** 4400), sp.Rational(-1, 3),
    sp.Rational(7**3000, 2**4001), sp.Float(0.1), sp.Float(0.0), sp.Float(5e-324), sp.Float(-1.7e308),
    sp.Float("0.1", 50), sp.Float("1e400"), sp.Float("1e-5000", 30), sp.Float(1, 3), negative_zero, sp.oo, -sp.oo,
    sp.nan, sp.pi, sp.E, sp.EulerGamma, sp.GoldenRatio, sp.Catalan, sp.TribonacciConstant, sp.true, sp.false,
    sp.CRootOf(X**5 - X - 1, 0), sp.CRootOf(X**3 - 2 * X**2 - 5, 0),
]  # fmt: skip


def with_leaves(*atoms: sp.Basic) -> Program:
    """A program whose outputs are an input and leaves."""
    heads = [sp.Symbol, *map(type, atoms)]
    rows = dict(enumerate([X, *atoms]))
    outputs = (Output((len(heads),), tuple(range(len(heads)))),)
    return Program(heads, [()] * len(heads), rows, (Input("x", ()),), outputs)


def exact(atom: sp.Basic) -> Any:
    """What tells atoms apart that SymPy takes for equal."""
    return type(atom), (atom._mpf_, atom._prec) if isinstance(atom, sp.Float) else atom


@pytest.mark.parametrize("atom", EVERY_ATOM, ids=lambda atom: type(atom).__name__)
def test_every_atom_comes_back(atom: sp.Basic) -> None:
    program = with_leaves(atom, sp.Float(2.5), atom)
    again = decode(encode(program, Options())).program
    assert [exact(again.atoms[row]) for row in range(4)] == [exact(program.atoms[row]) for row in range(4)]
    assert dataclasses.replace(again, atoms={}) == dataclasses.replace(program, atoms={})


def test_every_constant_of_a_kernel_is_bitwise_the_same() -> None:
    program = with_leaves(*[atom for atom in EVERY_ATOM if atom is not sp.nan])
    first, second = (compile_program(one, tier="fast") for one in (program, decode(encode(program, Options())).program))
    assert first(0.25).tobytes() == second(0.25).tobytes()


@pytest.mark.parametrize("head", INTRINSICS, ids=lambda head: head.__name__)
def test_every_head_comes_back(head: Any) -> None:
    """By its name alone; and the table's own points have as many operands as a file may give."""
    assert [other for other in INTRINSICS if other.__name__ == head.__name__] == [head]
    count = len(points_of(head)[0]) if head not in OWN_TESTS else {sp.ITE: 3, sp.Piecewise: 4}.get(head, 1)
    assert takes(head, count)
    operands = (0,) * count
    program = Program([sp.Symbol, head], [(), operands], {0: X}, (Input("x", ()),), (Output((), (1,)),))
    assert decode(encode(program, Options())).program == program


@pytest.mark.parametrize(
    ("head", "count"),
    [(sp.sin, 0), (sp.sin, 2), (sp.Pow, 1), (sp.Pow, 3), (sp.Add, 0), (sp.Piecewise, 3), (sp.Lt, 1), (sp.Not, 2),
     (sp.ITE, 2), (sp.atan2, 1), (sp.Heaviside, 3), (sp.log, 2)],
)  # fmt: skip
def test_heads_take_their_operands_only(head: Any, count: int) -> None:
    assert not takes(head, count)


MATRIX = SparsityPattern([0, 1, 2], [1, 1, 0], (3, 2), "csr")
SHAPED = {
    "nothing": Program([], [], {}, (), ()),
    "no inputs": program_from_sympy([], [sp.Integer(2)]),
    "empty input and output": Program([], [], {}, (Input("e", (0, 3)),), (Output((2, 0), ()),)),
    "zeros": program_from_sympy([X], [[X, 0, X]]),
    "structural zeros": Program([sp.Symbol], [()], {0: X}, (Input("x", ()),), (Output((2, 2), (0,), (3,)),)),
    "nothing but zeros": Program([sp.Symbol], [()], {0: X}, (Input("x", ()),), (Output((2, 2), (), ()),)),
    "a sparse matrix": Program([sp.Symbol], [()], {0: X}, (Input("x", ()),), (Output((3,), (0, 0, 0), None, MATRIX),)),
    "a sparse matrix with zeros": Program(
        [sp.Symbol], [()], {0: X}, (Input("x", ()),), (Output((), (0,)), Output((3,), (0,), (1,), MATRIX))
    ),
    "several": program_from_sympy([(X, Y)], [X * Y, [[X, sp.sin(Y)]], sp.Piecewise((X, X < Y), (2, True))], name="é\n"),
}


@pytest.mark.parametrize("name", SHAPED)
def test_every_shape_comes_back(name: str) -> None:
    program = SHAPED[name]
    found = decode(encode(program, Options(tier="fast", fma=False, chunk=7), {"any": [1]}))
    assert found.program == program
    assert found.options == Options(tier="fast", fma=False, chunk=7)
    assert found.containers == {"any": [1]}


def test_leaves_of_inputs_keep_their_names_only() -> None:
    t = sp.Symbol("t")
    x = sp.Function("x")(t)
    kept = decode(encode(program_from_sympy([x, x.diff(t), sp.IndexedBase("p")[2]], [x]), Options())).program
    assert [kept.atoms[row].name for row in range(3)] == ["x(t)", "Derivative(x(t), t)", "p[2]"]


def test_what_no_kernel_can_have_is_not_written() -> None:
    with pytest.raises(ArgumentError, match="real numbers"):
        encode(with_leaves(sp.I), Options())
    with pytest.raises(LoweringError, match="head f"):
        encode(Program([sp.Symbol, sp.Function("f")], [(), (0,)], {0: X}, (Input("x", ()),), ()), Options())
    for row in range(2):
        with pytest.raises(ArgumentError, match="no atom"):
            encode(Program([sp.Symbol, sp.Integer], [(), ()], {row: X}, (Input("x", ()),), ()), Options())


def test_every_field_is_written() -> None:
    """A field that is new has to be given a place in the file, or it would be lost."""
    known = {Program: {"heads", "operands", "atoms", "inputs", "outputs", "name"}, Input: {"name", "shape"},
             Output: {"shape", "rows", "positions", "pattern"}}  # fmt: skip
    for kind, names in known.items():
        assert {field.name for field in dataclasses.fields(kind) if field.type != "bool"} == names
    for field in dataclasses.fields(SparsityPattern):
        assert field.name in ("rows", "columns", "shape", "format")


def test_a_million_rows_take_ten_bytes_each() -> None:
    count = 10**6
    operands: list[tuple[int, ...]] = [(), *[(max(row - 2, 0), row - 1) for row in range(1, count)]]
    heads = [sp.Symbol, *[sp.Add if row % 2 else sp.Mul for row in range(1, count)]]
    program = Program(heads, operands, {0: X}, (Input("x", ()),), (Output((), (count - 1,)),))
    data = encode(program, Options())
    assert len(data) < 11 * count
    assert decode(data).program == program


GOOD = program_from_sympy([(X, Y)], [sp.sin(X) * Y + sp.Rational(1, 3), [X, 0.5]], name="good")


def altered(change: Callable[[dict[str, Any], list[Any]], object], program: Program = GOOD) -> bytes:
    """A file whose checksum is right, with something else in it."""
    header, arrays = unseal(encode(program, Options()), KIND, VERSION, "")
    arrays = [array.copy() for array in arrays]
    change(header, arrays)
    return seal(KIND, VERSION, header, arrays)


def put(array: int, value: Any) -> Callable[[dict[str, Any], list[Any]], object]:
    return lambda header, arrays: arrays.__setitem__(array, np.asarray(value))


def entry(name: str, value: Any) -> Callable[[dict[str, Any], list[Any]], object]:
    return lambda header, arrays: header.__setitem__(name, value)


COUNTS, KINDS, OPERANDS, NUMBERS, FLOATS, ROWS, MORE_ROWS = range(7)
BYTES = np.uint8
HOSTILE = {
    "a function of Python": entry("heads", ["__import__", "Mul", "Add"]),
    "a dotted name": entry("heads", ["os.system", "Mul", "Add"]),
    "another class of SymPy": entry("heads", ["Lambda", "Mul", "Add"]),
    "no name": entry("heads", [["sin"], "Mul", "Add"]),
    "a row that is its own operand": put(OPERANDS, np.array([0, 1, 3, 4, 5], BYTES)),
    "an operand that comes later": put(OPERANDS, np.array([200, 1, 2, 3, 4], BYTES)),
    "a negative operand": put(OPERANDS, np.array([-1, 1, 2, 3, 4], np.int64)),
    "operands that are no integers": put(OPERANDS, np.array([0.5, 1, 2, 3, 4])),
    "too few operands": put(OPERANDS, np.array([0, 1], BYTES)),
    "counts that overflow": put(COUNTS, np.array([2**63, 2**63, 1, 2, 2], np.uint64)),
    "counts that overflow to the right sum": put(COUNTS, np.array([2**62, 2**62, 2**62, 2**62, 5], np.uint64)),
    "floats that are integers": put(FLOATS, np.array([1], BYTES)),
    "two operands of a sine": lambda header, arrays: header["heads"].reverse(),
    "kinds without a head": put(KINDS, np.array([0, 1, 99], BYTES)),
    "leaves without an atom": put(NUMBERS, np.array([0, 77], BYTES)),
    "a float that is nan": put(FLOATS, np.array([np.nan])),
    "an atom of an unknown kind": entry("atoms", [["eval", "1"]]),
    "an atom that is code": entry("atoms", [["constant", "__import__('os')"]]),
    "digits that are none": entry("atoms", [["integer", "0x1g"]]),
    "a rational without a denominator": entry("atoms", [["rational", "1", "0"]]),
    "a rational that is an integer": entry("atoms", [["rational", "4", "2"]]),
    "a giant exponent": entry("atoms", [["float", "1", 10**30, 53]]),
    "more digits than bits": entry("atoms", [["float", "f" * 40, 0, 53]]),
    "a root of degree 10^4": entry("atoms", [["root", ["1"] * 10**4, 0]]),
    "a root that is a fraction": entry("atoms", [["root", ["2", "1"], 0]]),
    "a root of no polynomial": entry("atoms", [["root", ["0", "0", "5"], 0]]),
    "a complex root": entry("atoms", [["root", ["1", "0", "0", "1", "1"], 3]]),
    "a name that is a number": entry("name", 3),
    "inputs of another size": entry("inputs", [["x", [3]]]),
    "a giant input": entry("inputs", [["x", [2**40, 2**40]]]),
    "a negative extent": entry("inputs", [["x", [-2]]]),
    "an extent that is no integer": entry("inputs", [["x", [2.0]]]),
    "names that are numbers": entry("leaves", [1, 2]),
    "an output of rows that there are not": put(ROWS, np.array([255], BYTES)),
    "a negative row": put(ROWS, np.array([-1], np.int64)),
    "more places than rows": put(MORE_ROWS, np.array([0], BYTES)),
    "an array too many": lambda header, arrays: arrays.append(np.zeros(1, BYTES)),
    "an array too few": lambda header, arrays: arrays.pop(),
    "no header entries": lambda header, arrays: header.clear(),
    "an option that does not exist": lambda header, arrays: header["options"].update(system="rm"),
    "an option of another type": lambda header, arrays: header["options"].update(chunk="500"),
    "no operations at all in a chunk": lambda header, arrays: header["options"].update(chunk=0),
    "a chunk of one and a half operations": lambda header, arrays: header["options"].update(chunk=1.5),
    "options that are none": entry("options", "default"),
    "another tier": lambda header, arrays: header["options"].update(tier=["default"]),
    "outputs that are none": entry("outputs", 5),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_by_name(name: str) -> None:
    with pytest.raises(
        ArgumentError, match=r"^mine: no file that can be loaded: its checksum is right and .*; write it"
    ):
        decode(altered(HOSTILE[name]), "mine")


SPARSE_HOSTILE = {
    "a position outside": (1, np.array([9], BYTES)),
    "a negative position": (1, np.array([-1], np.int64)),
    "a position for no row": (1, np.array([1, 2], BYTES)),
    "a place outside of the matrix": (2, np.array([0, 1, 7], BYTES)),
    "a place twice": (3, np.array([1, 1, 1], BYTES)),
}


@pytest.mark.parametrize("name", SPARSE_HOSTILE)
def test_positions_and_patterns_are_checked(name: str) -> None:
    number, array = SPARSE_HOSTILE[name]
    if name == "a place twice":
        change = lambda header, arrays: (put(-1, array)(header, arrays), put(-2, array)(header, arrays))  # noqa: E731
    else:
        change = put(number - 4 if number > 1 else -3, array)
    with pytest.raises(ArgumentError, match="its checksum is right"):
        decode(altered(change, SHAPED["a sparse matrix with zeros"]))


SWEPT = Program(
    [sp.Symbol] * 3 + [sp.Mul, sp.Mul], [(), (), (), (0, 1), (0, 0)], {0: X, 1: Y, 2: sp.Symbol("z", real=True)},
    (Input("x", ()), Input("seed", (2,))), (Output((4,), (3,), (2,), swept=True), Output((), (4,))), seeded=True,
)  # fmt: skip


def test_sweeps_come_back_and_stay_inside_their_output() -> None:
    assert decode(encode(SWEPT, Options())).program == SWEPT
    swept, fixed = SWEPT.outputs
    for outputs in (
        (dataclasses.replace(swept, positions=(3,)), fixed),
        (Output((1,), (3,), None, swept=True), fixed),
        (swept, dataclasses.replace(fixed, rows=(3,))),
        (Output((9,), (3, 3), (1, 2), swept=True), fixed),  # columns of one over those of the other
    ):
        with pytest.raises(ArgumentError, match="its checksum is right"):
            decode(encode(dataclasses.replace(SWEPT, outputs=outputs), Options()))
    for change in (entry("seeded", False), entry("inputs", [["x", [3]], ["seed", [0]]])):
        with pytest.raises(ArgumentError, match="its checksum is right"):
            decode(altered(change, SWEPT))


def test_positions_twice_are_refused() -> None:
    program = dataclasses.replace(SHAPED["structural zeros"], outputs=(Output((2, 2), (0, 0), (3, 3)),))
    with pytest.raises(ArgumentError, match="twice"):
        decode(encode(program, Options()))


class Trap:
    """What a pickle would run."""

    def __reduce__(self) -> Any:
        return sys.exit, ("a pickle was run",)


BOMB = zlib.compress(bytes(10**7))
FOREIGN = {
    "nothing": (b"", "does not begin"),
    "a pickle": (pickle.dumps(Trap()), "does not begin"),
    "a compressed bomb": (BOMB, "does not begin"),
    "a zip file": (b"PK\x03\x04" + bytes(100), "does not begin"),
    "a text": (b"import os\n" * 10, "does not begin"),
    "half of the first line": (encode(GOOD, Options())[:9], "cut short"),
    "the head alone": (encode(GOOD, Options())[:64], "cut short: 64 bytes of"),
    "all but a byte": (encode(GOOD, Options())[:-1], "cut short"),
    "a byte too many": (encode(GOOD, Options()) + b"\0", "too long"),
    "an object file of the cache": (seal(b"object", 1, {}, []), "it holds b'object', not b'program'"),
    "a newer version": (seal(KIND, VERSION + 1, {}, []), f"version {VERSION + 1} of the format.*; update symad"),
    "no arrays": (seal(KIND, VERSION, {}, []), "its checksum is right"),
    "a list": (seal(KIND, VERSION, [], []), "its checksum is right"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_refused_by_name(name: str) -> None:
    data, message = FOREIGN[name]
    with pytest.raises(ArgumentError, match=message):
        decode(data)


def test_headers_that_lie_are_refused() -> None:
    """Lengths, deep nesting, objects in arrays: with a right checksum, and without taking memory or time."""
    for text in (b"[" * 10**5, b'{"header":{},"arrays":[["|O",1]]}', b'{"header":{},"arrays":[["<f8",1000000000000]]}',
                 b'{"header":{},"arrays":[["<f8",-1]]}', b'{"header":{},"arrays":[["<f8",' + b"9" * 5000 + b"]]}",
                 b'{"header":{}}', b"\xff\xfe", b"null"):  # fmt: skip
        with pytest.raises(ArgumentError, match="its checksum is right"):
            decode(resealed(text))


def resealed(text: bytes) -> bytes:
    import hashlib  # noqa: PLC0415 (here only)

    fixed = struct.pack("<8s8sIIQ", b"\x89symad\r\n", KIND, VERSION, len(text), 64 + len(text))
    return fixed + hashlib.sha256(fixed + text).digest() + text


def test_every_byte_counts() -> None:
    data = encode(GOOD, Options())
    for position in range(len(data)):
        for bit in (1, 128):
            damaged = bytearray(data)
            damaged[position] ^= bit
            with pytest.raises(ArgumentError):
                decode(bytes(damaged))
        with pytest.raises(ArgumentError):
            decode(data[:position])
