"""Random programs by every route against oracles without derivatives: see tests/support/nested_fuzz.py."""

from __future__ import annotations

from collections import Counter

import pytest
import sympy as sp

from codegen import heads as h
from codegen.errors import WorkbenchError
from symad.derivatives import linear, second_order
from symad.graph.graph import Graph
from symad.rules.overrides import OVERRIDES
from tests.support.draws import seeded
from tests.support.nested_fuzz import check, make

PROGRAMS = 96
SHARDS = 12

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy evaluates both branches of np.where


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.thinned
def test_random_programs(shard):
    done = Counter()
    for seed in range(shard, PROGRAMS, SHARDS):
        done[check(make(seeded(seed)), complete=False, done=done)] += 1
    assert done["right"] >= 0.9 * PROGRAMS / SHARDS
    assert done["checks"] > 8 * done["right"]


def first_failing_seed(known=0, limit=120):
    """A seed whose program is found wrong, or -1; the one that is known to be is tried first."""
    for seed in (known, *range(limit)):
        try:
            check(make(seeded(seed)), complete=False)
        except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, WorkbenchError):
            return seed
    return -1


@pytest.mark.parametrize(
    ("head", "seed"),
    [(sp.Abs, 10), (sp.tanh, 0), (sp.atan2, 52), (h.hypot, 23), (h.logaddexp, 53), (sp.Mod, 8)],
    ids=["Abs", "tanh", "atan2", "hypot", "logaddexp", "Mod"],
)
def test_a_wrong_sign_in_a_rule_is_seen(head, seed, monkeypatch):
    right = OVERRIDES[head]

    def wrong(build, p, *operands):
        return build.neg(right[0](build, p, *operands))

    second_order._second_template.cache_clear()
    monkeypatch.setitem(OVERRIDES, head, (wrong, *right[1:]))
    try:
        assert first_failing_seed(seed) >= 0
    finally:
        second_order._second_template.cache_clear()


def test_levels_without_aliases_are_seen(monkeypatch):
    monkeypatch.setattr(Graph, "alias", lambda graph, operand: operand)
    assert first_failing_seed() >= 0


def test_guards_that_are_ignored_are_seen(monkeypatch):
    """The tangent of a branch that is not taken would pass."""
    monkeypatch.setattr(linear, "settle", lambda build, term: term[0])
    assert first_failing_seed() >= 0
