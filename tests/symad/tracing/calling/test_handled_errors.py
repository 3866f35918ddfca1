"""Errors that handlers catch: functions with a handler are as plain Python on numbers and in kernels, or refused."""

from itertools import islice

import pytest

from tests.support.handled_errors import functions, outcomes

EVERY = 179  # functions; prime to the number of forms
PARTS = 64  # of some 20 s each: a test is ended after 300 s


@pytest.mark.parametrize("start", range(2))
def test_some_of_them(start):
    found = {name: list(outcomes(f)) for name, f in islice(functions(), start, None, 2 * EVERY)}
    assert [(name, way, said) for name, each in found.items() for way, said in each if said.startswith("wrong")] == []


@pytest.mark.wide
@pytest.mark.parametrize("start", range(PARTS))
def test_all_of_them(start):
    found = {name: list(outcomes(f)) for name, f in islice(functions(), start, None, PARTS)}
    assert [(name, way, said) for name, each in found.items() for way, said in each if said.startswith("wrong")] == []
