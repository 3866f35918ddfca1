"""Classes: operations that are written alike, whatever inputs and constants they read.

The class of a row is its head and the classes of its operands, those of a commutative pair sorted; all inputs are one
class, and so are all numbers. So the terms of a sum are of one class, in whatever order they were written.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import sympy as sp

from codegen.limits import EVERY, check
from codegen.program import Head, Rows
from codegen.regions.table import distinct
from codegen.sympy_in import PAIRWISE
from symad.structure.loop import Loop, Nodes, is_nodes

NUMBER = 0  # the class of all numbers that a table may hold
STAGE = 1 << 40  # heights are below it
HEAVY = 1e9
NONE: frozenset[int] = frozenset()

_RELATIONALS = (sp.Eq, sp.Ne, sp.Lt, sp.Le, sp.Gt, sp.Ge)
_TABLES = frozenset({sp.Piecewise, *_RELATIONALS})  # besides PAIRWISE: heads whose numbers may differ
_COMMUTES, _PLAIN, _POWER, _STRICT = range(4)
_CHEAP: dict[Head, float] = {sp.Add: 0.5, sp.Mul: 0.5, sp.Max: 1.0, sp.Min: 1.0, sp.Piecewise: 1.0, sp.Abs: 0.5}
_ROOT, _DEAR = 4.0, 20.0  # what a quotient or a root costs, and what other functions cost, in pairs of + and *


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of each row that is needed (-1: of the others), and what members of a class have in common.

    The operands of row r are `flat[start[r] : start[r + 1]]`, commutative pairs sorted alike in all members of a class.
    `lead[r]` is the leaf that a row reads first. A key says when a class is looked at: it is larger than those of its
    operands.
    """

    of: Nodes
    start: Nodes
    flat: Nodes
    lead: Nodes
    uses: Nodes
    members: Nodes
    zeros: frozenset[int]  # the leaves that are 0
    heads: list[Head | None]  # None: a leaf
    operands: list[tuple[int, ...]]
    keys: list[int]
    weights: list[float]
    operations: list[float]
    constant: list[bool]
    set_apart: dict[int, Nodes]  # sums that are set apart, by class

    def parts(self, row: int) -> list[int]:
        """Return the operands of a row; none of a sum that is set apart."""
        start = self.start[row]
        found: list[int] = self.flat[start : start + len(self.operands[self.of[row]])].tolist()
        return found


@dataclass(eq=False)
class _Kinds:
    """Classes in the making."""

    heads: list[Head | None] = field(default_factory=lambda: [None])
    operands: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    keys: list[int] = field(default_factory=lambda: [0])
    weights: list[float] = field(default_factory=lambda: [0.0])
    operations: list[float] = field(default_factory=lambda: [0.0])
    constant: list[bool] = field(default_factory=lambda: [True])
    stages: dict[int, int] = field(default_factory=dict)

    def leaf(self, key: int, *, constant: bool) -> int:
        self.heads.append(None)
        self.operands.append(())
        self.keys.append(key)
        self.weights.append(0.0)
        self.operations.append(0.0)
        self.constant.append(constant)
        return len(self.heads) - 1

    def apart(self, highest: int) -> int:
        """The class of sums that are set apart: given, but after all that is of the stage of their terms."""
        stage = highest // STAGE + 1
        if stage not in self.stages:
            self.stages[stage] = self.leaf(stage * STAGE, constant=False)
        return self.stages[stage]

    def node(self, head: Head, operands: tuple[int, ...], own: float) -> int:
        self.keys.append(max(self.keys[part] for part in operands) + 1)
        self.heads.append(head)
        self.operands.append(operands)
        self.weights.append(min(HEAVY, own + sum(self.weights[part] for part in operands)))
        self.operations.append(min(HEAVY, 1.0 + sum(self.operations[part] for part in operands)))
        self.constant.append(all(self.constant[part] for part in operands))
        return len(self.heads) - 1


def classify(rows: Rows, inputs: Nodes, wanted: Nodes, done: Sequence[Loop], ragged: Set[int] = NONE) -> Classes:
    """Return the classes of all rows that the wanted ones need; results of loops in `done` are given, as inputs are.

    So are sums that are set apart as ragged, but what they need is looked at as well.

    >>> from codegen.program import Program
    >>> x = sp.Symbol("x")
    >>> rows = Program([sp.Symbol, sp.Symbol, sp.sin, sp.sin], [(), (), (0,), (1,)], {0: x, 1: x}, (), ())
    >>> found = classify(rows, np.array([0, 1]), np.array([2, 3]), [])
    >>> found.of.tolist(), found.members.tolist()
    ([1, 1, 2, 2], [0, 2, 2])
    """
    kinds = _Kinds()
    of = _given(rows, inputs, wanted, done, ragged, kinds)
    needed = _needed(rows.operands, wanted, of)
    zeros = _leaves(rows, needed, of, kinds)
    lead = list(range(len(of)))
    swapped, set_apart = _operations(rows, needed, of, lead, ragged, kinds)
    count = len(rows.operands)
    lengths = np.fromiter(map(len, rows.operands), dtype=np.int64, count=count)
    flat = np.fromiter(chain.from_iterable(rows.operands), dtype=np.int64, count=int(lengths.sum()))
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    first = start[np.array(swapped, dtype=np.int64)]
    flat[first], flat[first + 1] = flat[first + 1], flat[first]
    classes = np.array(of, dtype=np.int64)
    inner = np.repeat(np.array([bool(flag) for flag in needed]), lengths)
    uses = np.bincount(flat[inner], minlength=len(of)) + np.bincount(wanted, minlength=len(of))
    members = np.bincount(classes[classes >= 0], minlength=len(kinds.heads))
    return Classes(
        classes, start, flat, np.array(lead, dtype=np.int64), uses, members, zeros,
        kinds.heads, kinds.operands, kinds.keys, kinds.weights, kinds.operations, kinds.constant, set_apart,
    )  # fmt: skip


def _needed(operands: Sequence[tuple[int, ...]], wanted: Nodes, of: Sequence[int]) -> bytearray:
    """Flags of the rows that the wanted ones need and that are not given."""
    needed = bytearray(len(operands))
    for row in wanted.tolist():
        if of[row] < 0:
            needed[row] = 1
    for row in range(len(operands) - 1, -1, -1):
        if needed[row]:
            if of[row] >= 0:
                needed[row] = 0
                continue
            for part in operands[row]:
                needed[part] = 1
    return needed


def _given(
    rows: Rows, inputs: Nodes, wanted: Nodes, done: Sequence[Loop], ragged: Set[int], kinds: _Kinds
) -> list[int]:
    """Classes of inputs, and of results of loops: one for each stage, so that no loop waits for itself."""
    results = [use.nodes for loop in done for use in loop.results]
    size = max([len(rows.operands), int(wanted.max(initial=-1)) + 1, *(int(part.max()) + 1 for part in results)])
    of = np.full(size, -1, dtype=np.int64)
    of[inputs] = kinds.leaf(0, constant=False)
    if done:
        stages = _stages(rows, inputs, wanted, done, ragged, size)
        class_of = {stage: kinds.leaf(stage * STAGE, constant=False) for stage in sorted(set(stages))}
        for loop, stage in zip(done, stages, strict=True):
            for use in loop.results:
                of[use.nodes] = class_of[stage]
    return of.tolist()


def _stages(rows: Rows, inputs: Nodes, wanted: Nodes, done: Sequence[Loop], ragged: Set[int], size: int) -> list[int]:
    """Return for each loop one more than the highest stage of a loop that it waits for, however it is interleaved."""
    owner = np.full(size, -1, dtype=np.int64)
    for number, loop in enumerate(done):
        for use in loop.results:
            owner[use.nodes] = number
    owners, operands = owner.tolist(), rows.operands
    owner[inputs] = len(done)
    needed = _needed(operands, wanted, owner.tolist())
    rows_needed = [row for row in range(len(operands)) if needed[row] and operands[row]]
    reads = [distinct(np.concatenate([np.empty(0, np.int64), *read_by(loop)])).tolist() for loop in done]
    loop_stages, changed = [1] * len(done), True
    stages = [0 if number < 0 else 1 for number in owners]
    while changed:
        for row in rows_needed:
            stages[row] = max([stages[part] for part in operands[row]]) + (row in ragged)
        changed = False
        for number, loop in enumerate(done):
            stage = 1 + max([stages[row] for row in reads[number]], default=0)
            if stage != loop_stages[number]:
                changed, loop_stages[number] = True, stage
                for use in loop.results:
                    for row in use.nodes.tolist():
                        stages[row] = stage
    return loop_stages


def read_by(loop: Loop) -> list[Nodes]:
    """Return the columns of nodes that a loop reads."""
    return [column for column in loop.reads if is_nodes(column)] + [carry.initial for carry in loop.carries]


def _leaves(rows: Rows, needed: bytearray, of: list[int], kinds: _Kinds) -> frozenset[int]:
    """Set the classes of leaves; return those that are 0."""
    operands, atoms, zeros = rows.operands, rows.atoms, []
    for row in [row for row in range(len(operands)) if needed[row] and not operands[row]]:
        atom = atoms[row]
        if isinstance(atom, sp.Symbol):
            of[row] = NUMBER + 1  # a leaf that stands for something is read, as an input is
        elif isinstance(atom, sp.Expr):
            of[row] = NUMBER
            if isinstance(atom, sp.Number) and not atom:
                zeros.append(row)
        else:
            of[row] = kinds.leaf(0, constant=True)
    return frozenset(zeros)


def _operations(
    rows: Rows, needed: bytearray, of: list[int], lead: list[int], ragged: Set[int], kinds: _Kinds
) -> tuple[list[int], dict[int, Nodes]]:
    """Set the classes of operations, bottom-up; return the rows whose two operands change places, and ragged sums."""
    codes: dict[Head, int] = {}
    code_of = [codes.setdefault(head, len(codes)) for head in rows.heads]
    heads = list(codes)
    rules = [_rule(head) for head in heads]
    memo: dict[tuple[int, ...], int] = {}
    literals: dict[int, int] = {}
    swapped: list[int] = []
    apart: dict[int, list[int]] = {}
    operands = rows.operands
    for number, row in enumerate([row for row in range(len(operands)) if needed[row] and of[row] < 0]):
        if not number % EVERY:
            check("looking for sums")
        parts, code = operands[row], code_of[row]
        if row in ragged:
            of[row] = kinds.apart(max([kinds.keys[of[part]] for part in parts]))
            apart.setdefault(of[row], []).append(row)
            continue
        rule = rules[code]
        if rule == _COMMUTES and len(parts) == 2:
            left, right = parts
            one, two = of[left], of[right]
            if one > two or (one == two and (lead[left], left) > (lead[right], right)):
                left, right, one, two = right, left, two, one
                swapped.append(row)
            key: tuple[int, ...] = (code, one, two)
            lead[row] = lead[left] if one else lead[right]
        else:
            key = (code, *_operand_classes(parts, rule, of, literals, kinds))
            lead[row] = lead[parts[0]]
        found = memo.get(key)
        if found is None:
            atom = rows.atoms.get(parts[1]) if rule == _POWER else None
            found = memo[key] = kinds.node(heads[code], key[1:], _cost(heads[code], atom))
        of[row] = found
    return swapped, {kind: np.array(sums) for kind, sums in apart.items()}


def _operand_classes(
    parts: tuple[int, ...], rule: int, of: list[int], literals: dict[int, int], kinds: _Kinds
) -> list[int]:
    """Classes of operands; a number that decides what an operation means, as an exponent does, is its own class."""
    found = [of[part] for part in parts]
    for place in range(len(parts)) if rule == _STRICT else (1,) if rule == _POWER else ():
        if found[place] == NUMBER:
            if parts[place] not in literals:
                literals[parts[place]] = kinds.leaf(0, constant=True)
            found[place] = literals[parts[place]]
    return found


def _rule(head: Head) -> int:
    if head in PAIRWISE:
        return _COMMUTES
    return _PLAIN if head in _TABLES else _POWER if head is sp.Pow else _STRICT


def _cost(head: Head, exponent: sp.Basic | None) -> float:
    if head is sp.Pow:
        if exponent == 2:
            return 0.5
        return _ROOT if isinstance(exponent, sp.Rational) and exponent.q <= 2 else _DEAR
    return 0.5 if head in _RELATIONALS else _CHEAP.get(head, _DEAR)
