"""Group operations that are written alike, whatever inputs and constants they read.

The class of a row is its head and the classes of its operands, those of a commutative pair sorted. All inputs are one
class, and so are all numbers: the terms of a sum are of one class, in whatever order they were written. But numbers
among a row's operands that decide what it means, such as exponents, decide its class, and go into no table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from graphlib import CycleError, TopologicalSorter
from itertools import chain

import numpy as np
import sympy as sp

import codegen.distribution_heads as d
import codegen.special_heads as s
from codegen.ir.lazy_atoms import floats_of
from codegen.ir.program import Head, Rows
from codegen.ir.row_table import COMMUTATIVE
from codegen.ir.tables import distinct
from codegen.limits import EVERY, check
from codegen.loops.find.flat_rows import Flags, FlatRows, flattened, grouped, needed, packed, waves
from codegen.loops.loop import Loop, Nodes, StraightError
from codegen.records import dataclass

RELATIONALS = (sp.Eq, sp.Ne, sp.Lt, sp.Le, sp.Gt, sp.Ge)
_TABLES = frozenset({
    sp.Piecewise, *RELATIONALS, sp.beta,
    s.stdtr, s.gammainc, s.gammaincc, s.betainc, s.betaincc, s.gamma_kernel, s.beta_kernel, s.betaln,
    d.stdtrit, d.gammaincinv, d.gammainccinv, d.betaincinv, d.betainccinv,
})  # fmt: skip # besides COMMUTATIVE: any numbers
_ORDERS: dict[Head, int] = {s.polygamma_difference: 1, d.gamma_moment: 1, d.beta_moment: 2}  # first operands, orders
COMMUTES, PLAIN, POWER, STRICT, ORDER, TWO_ORDERS = range(6)


def rule_of(head: Head) -> int:
    """Return the rule of a head.

    >>> rule_of(sp.Mul) == COMMUTES, rule_of(sp.polygamma) == STRICT, rule_of(s.polygamma_difference) == ORDER
    (True, True, True)
    """
    if head in COMMUTATIVE:
        return COMMUTES
    if head in _ORDERS:
        return ORDER if _ORDERS[head] == 1 else TWO_ORDERS
    return PLAIN if head in _TABLES else POWER if head is sp.Pow else STRICT


def deciding(rule: int, count: int) -> Sequence[int]:
    """Return the operands, of `count`, whose numbers decide.

    >>> deciding(POWER, 2), deciding(COMMUTES, 2), deciding(STRICT, 2)
    ((1,), (), range(0, 2))
    """
    places: dict[int, Sequence[int]] = {STRICT: range(count), POWER: (1,), ORDER: (0,), TWO_ORDERS: (0, 1)}
    return places.get(rule, ())


NUMBER = 0  # the class of all numbers that a table may hold
STAGE = 1 << 40  # heights are below it
HEAVY = 1e9
NONE: frozenset[int] = frozenset()

_CHEAP: dict[Head, float] = {sp.Add: 0.5, sp.Mul: 0.5, sp.Max: 1.0, sp.Min: 1.0, sp.Piecewise: 1.0, sp.Abs: 0.5}
_ROOT, _DEAR = 4.0, 20.0  # costs of a quotient or root, and of other functions, in pairs of + and *


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of each row that is needed (-1: of the others), and the properties of each class.

    The operands of row r are `flat[start[r] : start[r + 1]]`, commutative pairs sorted alike in all members of a class.
    `lead[r]` is the leaf that a row reads first. Classes are visited by their keys, which are larger than those of
    their operands.
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
        operands: list[int] = self.flat[start : start + len(self.operands[self.of[row]])].tolist()
        return operands


@dataclass(eq=False)
class _Kinds:
    """Classes under construction."""

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
        """Return the class of sums that are set apart: leaves, which are scheduled after their terms."""
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


def classify(
    rows: Rows,
    inputs: Nodes,
    targets: Nodes,
    done: Sequence[Loop],
    ragged: Set[int] = NONE,
    flat: FlatRows | None = None,
) -> Classes:
    """Return the classes of all rows that target rows need; results of loops in `done` are leaves, as inputs are.

    So are ragged sums, which are set apart; but their operands have classes too.

    >>> from codegen.ir.program import Program
    >>> x = sp.Symbol("x")
    >>> rows = Program([sp.Symbol, sp.Symbol, sp.sin, sp.sin], [(), (), (0,), (1,)], {0: x, 1: x}, (), ())
    >>> classes = classify(rows, np.array([0, 1]), np.array([2, 3]), [])
    >>> classes.of.tolist(), classes.members.tolist()
    ([1, 1, 2, 2], [0, 2, 2])
    """
    kinds, flat = _Kinds(), flattened(rows) if flat is None else flat
    of = _leaf_classes(rows, flat, inputs, targets, done, ragged, kinds)
    size = len(of)
    needs = needed(flat, _flags(size, targets), of >= 0) & (of < 0)
    zeros = _leaves(rows, np.nonzero(needs[: len(flat)] & ~flat.is_operation)[0], of, kinds)
    classifier = _Classifier(rows, flat, kinds, of, np.arange(size), flat.operands.copy())
    set_apart = classifier.run(needs[: len(flat)] & flat.is_operation, ragged)
    of, operands = classifier.of, classifier.parts
    inner = np.repeat(needs[flat.rows], flat.counts)
    uses = np.bincount(operands[inner], minlength=size) + np.bincount(targets, minlength=size)
    members = np.bincount(of[of >= 0], minlength=len(kinds.heads))
    return Classes(
        of, flat.start, operands, classifier.lead, uses, members, zeros,
        kinds.heads, kinds.operands, kinds.keys, kinds.weights, kinds.operations, kinds.constant, set_apart,
    )  # fmt: skip


def _flags(size: int, rows: Nodes) -> Flags:
    flags = np.zeros(size, dtype=bool)
    flags[rows] = True
    return flags


def _leaf_classes(
    rows: Rows, flat: FlatRows, inputs: Nodes, targets: Nodes, done: Sequence[Loop], ragged: Set[int], kinds: _Kinds
) -> Nodes:
    """Return the classes of inputs and of results of loops: one for each stage, so that no loop waits for itself."""
    results = [use.nodes for loop in done for use in loop.results]
    size = max([len(rows.operands), int(targets.max(initial=-1)) + 1, *(int(part.max()) + 1 for part in results)])
    of = np.full(size, -1, dtype=np.int64)
    of[inputs] = kinds.leaf(0, constant=False)
    if done:
        stages = _stages(rows, flat, inputs, targets, done, ragged, size)
        class_of = {stage: kinds.leaf(stage * STAGE, constant=False) for stage in sorted({*chain(*stages)})}
        for loop, (own, added) in zip(done, stages, strict=True):
            for use in loop.results:
                of[use.nodes] = class_of[added if use.kind == "add" else own]
    return of


def _stages(
    rows: Rows, flat: FlatRows, inputs: Nodes, targets: Nodes, done: Sequence[Loop], ragged: Set[int], size: int
) -> list[tuple[int, int]]:
    """Return the stages of each loop and of the sums that it adds to.

    The stage of a loop is one more than the highest stage of a loop that it waits for. Sums wait for all loops that
    add to them; one of these may read other results of another.
    """
    owner, is_sum = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=bool)
    for number, loop in enumerate(done):
        for use in loop.results:
            owner[use.nodes], is_sum[use.nodes] = number, use.kind == "add"
    owner[inputs] = -1
    stops = owner >= 0
    stops[inputs] = True
    needs = needed(flat, _flags(size, targets), stops) & ~stops
    together = _together(done, owner)
    count, group_of = len(done), np.empty(len(done), dtype=np.int64)
    for group, numbers in enumerate(together):
        group_of[numbers] = group
    rows_needed = np.nonzero(needs[: len(flat)] & flat.is_operation)[0]
    # Items that wait: rows by their numbers, then loops, then the sums of groups of loops. -1: waits for nothing.
    source = np.full(size, -1, dtype=np.int64)
    source[rows_needed] = rows_needed
    results = np.nonzero(owner >= 0)[0]
    source[results] = size + np.where(is_sum[results], count + group_of[owner[results]], owner[results])
    of_row = source.tolist()
    waits = {row: {of_row[part] for part in rows.operands[row]} for row in rows_needed.tolist()}
    for number, loop in enumerate(done):
        reads = distinct(np.concatenate([np.empty(0, np.int64), *loop.nodes_read]))
        waits[size + number] = {*source[reads].tolist()}
    waits |= {size + count + group: {size + number for number in numbers} for group, numbers in enumerate(together)}
    stage_of = _longest(waits, lambda k: int(size <= k < size + count) or int(k in ragged))
    return [(stage_of[size + k], stage_of[size + count + int(group_of[k])]) for k in range(count)]


def _longest(waits: Mapping[int, Set[int]], weight: Callable[[int], int]) -> dict[int, int]:
    """Return for each item the weight of the heaviest chain of items that it waits for, its own weight included."""
    try:
        order = [*TopologicalSorter(waits).static_order()]
    except CycleError as error:
        raise StraightError("its loops wait for each other: no order runs them all") from error
    total: dict[int, int] = {}
    for number in order:
        total[number] = weight(number) + max([total[other] for other in waits.get(number, ())], default=0)
    return total


def _together(done: Sequence[Loop], owner: Nodes) -> list[list[int]]:
    """Return groups of loops that add to the same sums, which are complete when all loops of a group have run."""
    group_of = list(range(len(done)))
    for number, loop in enumerate(done):
        for use in loop.results:
            for other in distinct(owner[use.nodes]).tolist() if use.kind == "add" else ():
                own, joined = group_of[number], group_of[other]
                group_of = [own if group == joined else group for group in group_of]
    groups: dict[int, list[int]] = {}
    for number, group in enumerate(group_of):
        groups.setdefault(group, []).append(number)
    return list(groups.values())


def _leaves(rows: Rows, leaves: Nodes, of: Nodes, kinds: _Kinds) -> frozenset[int]:
    """Set the classes of leaves; return those that are 0."""
    floats, numbers = floats_of(rows.atoms, leaves)
    of[leaves[floats]] = NUMBER
    zeros = leaves[floats][numbers == 0].tolist()
    for row in leaves[~floats].tolist():
        atom = rows.atoms[row]
        if isinstance(atom, sp.Symbol):
            of[row] = NUMBER + 1  # a symbol is read, as an input is
        elif isinstance(atom, sp.Expr):
            of[row] = NUMBER
            if isinstance(atom, sp.Number) and not atom:
                zeros.append(row)
        else:
            of[row] = kinds.leaf(0, constant=True)
    return frozenset(zeros)


@dataclass(eq=False)
class _Classifier:
    """Classifies operations bottom-up: many rows at once as long as there are many, then one by one."""

    rows: Rows
    flat: FlatRows
    kinds: _Kinds
    of: Nodes
    lead: Nodes
    parts: Nodes  # operands, the two of a pair that commutes sorted by their classes
    rules: Nodes = field(init=False)  # by code
    memo: dict[tuple[int, ...], int] = field(default_factory=dict)
    literals: dict[int, int] = field(default_factory=dict)

    def run(self, todo: Flags, ragged: Set[int]) -> dict[int, Nodes]:
        """Set all classes; return the ragged sums, by class."""
        self.rules = np.array([rule_of(head) for head in self.flat.heads])
        todo[list(ragged)] = False
        apart = np.zeros_like(todo)
        apart[list(ragged)] = True
        *many, rest = waves(self.flat, todo, apart)
        for wave in many:
            check("looking for sums")
            for count in np.unique(self.flat.arity[wave]).tolist():
                self.many(wave[self.flat.arity[wave] == count], count)
        return self.one_by_one(np.sort(np.concatenate([rest, np.nonzero(apart)[0]])), ragged)

    def many(self, rows: Nodes, count: int) -> None:
        """Set the classes of rows of `count` operands, whose classes are known."""
        codes, places = self.flat.codes[rows], self.flat.start[rows][:, None] + np.arange(count)
        rules, parts = self.rules[codes], self.parts[places]
        if count == 2:
            left, right = self.of[parts].T
            leads = self.lead[parts]
            later = (leads[:, 0] > leads[:, 1]) | ((leads[:, 0] == leads[:, 1]) & (parts[:, 0] > parts[:, 1]))
            swapped = (rules == COMMUTES) & ((left > right) | ((left == right) & later))
            parts[swapped] = parts[swapped, ::-1]
            self.parts[places] = parts
        classes = self.of[parts]
        first = self.lead[parts[:, 0]]
        behind = (rules == COMMUTES) & (classes[:, 0] == NUMBER) if count == 2 else np.zeros(len(rows), dtype=bool)
        self.lead[rows] = np.where(behind, self.lead[parts[:, -1]], first)
        place = np.arange(count)
        decides = (rules == STRICT)[:, None] | ((rules == POWER)[:, None] & (place == 1))
        decides |= ((rules == ORDER)[:, None] & (place < 1)) | ((rules == TWO_ORDERS)[:, None] & (place < 2))
        decides &= classes == NUMBER
        different, where = np.unique(parts[decides], return_inverse=True)
        classes[decides] = np.array([self.literal(part) for part in different.tolist()], dtype=np.int64)[where]
        firsts, numbers = grouped(packed([codes, *classes.T]))
        kinds = [self.kind_of(int(rows[at]), classes[at].tolist()) for at in firsts.tolist()]
        self.of[rows] = np.array(kinds)[numbers]

    def kind_of(self, row: int, classes: Sequence[int]) -> int:
        """Return the class of a row whose operands are of some classes."""
        code = int(self.flat.codes[row])
        key = (code, *classes)
        kind = self.memo.get(key)
        if kind is None:
            head = self.flat.heads[code]
            atom = self.rows.atoms.get(self.rows.operands[row][1]) if head is sp.Pow else None
            kind = self.memo[key] = self.kinds.node(head, key[1:], _cost(head, atom))
        return kind

    def literal(self, row: int) -> int:
        """Return the class of a number that decides what an operation means, such as an exponent."""
        if row not in self.literals:
            self.literals[row] = self.kinds.leaf(0, constant=True)
        return self.literals[row]

    def one_by_one(self, rows: Nodes, ragged: Set[int]) -> dict[int, Nodes]:
        """Set the classes of rows, ascending, and of ragged sums; return those by class."""
        of, lead, kinds, memo = self.of.tolist(), self.lead.tolist(), self.kinds, self.memo
        codes, rules, operands = self.flat.codes[rows].tolist(), self.rules.tolist(), self.rows.operands
        swapped: list[int] = []
        apart: dict[int, list[int]] = {}
        for number, (row, code) in enumerate(zip(rows.tolist(), codes, strict=True)):
            if not number % EVERY:
                check("looking for sums")
            parts, rule = operands[row], rules[code]
            if row in ragged:
                of[row] = kinds.apart(max([kinds.keys[of[part]] for part in parts]))
                apart.setdefault(of[row], []).append(row)
                continue
            if rule == COMMUTES and len(parts) == 2:
                left, right = parts
                left_kind, right_kind = of[left], of[right]
                if left_kind > right_kind or (left_kind == right_kind and (lead[left], left) > (lead[right], right)):
                    left, right, left_kind, right_kind = right, left, right_kind, left_kind
                    swapped.append(row)
                lead[row] = lead[left] if left_kind else lead[right]
                kind = memo.get((code, left_kind, right_kind))
                of[row] = self.kind_of(row, (left_kind, right_kind)) if kind is None else kind
            else:
                lead[row] = lead[parts[0]]
                classes = [of[part] for part in parts]
                for place in deciding(rule, len(parts)):
                    if classes[place] == NUMBER:
                        classes[place] = self.literal(parts[place])
                of[row] = self.kind_of(row, classes)
        first = self.flat.start[np.array(swapped, dtype=np.int64)]
        self.parts[first], self.parts[first + 1] = self.parts[first + 1], self.parts[first]
        self.of, self.lead = np.array(of, dtype=np.int64), np.array(lead, dtype=np.int64)
        return {kind: np.array(sums) for kind, sums in apart.items()}


def _cost(head: Head, exponent: sp.Basic | None) -> float:
    if head is sp.Pow:
        if exponent == 2:
            return 0.5
        return _ROOT if isinstance(exponent, sp.Rational) and exponent.q <= 2 else _DEAR
    return 0.5 if head in RELATIONALS else _CHEAP.get(head, _DEAR)
