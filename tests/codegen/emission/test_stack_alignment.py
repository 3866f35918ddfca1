"""Registers that are kept on the stack: where they begin."""

import re

import numpy as np
import pytest

import symad as sa
from codegen.emission.schedule import aligned
from codegen.lanes import Lanes
from codegen.processor import is_x86_64, vector_bits

pytestmark = pytest.mark.skipif(not is_x86_64() or vector_bits() < 256, reason="x86-64 with registers of 256 bits")


def frames(assembly):
    """By function: to what its stack is aligned, 0 where nothing is asked for."""
    found = re.split(r"^(kernel[\w.]*):", assembly, flags=re.MULTILINE)[1:]
    masks = [re.search(r"andq\s+\$-(\d+), %rsp", text) for text in found[1::2]]
    return {name: int(mask[1]) if mask else 0 for name, mask in zip(found[::2], masks, strict=True)}


def test_more_values_than_registers():
    """The sums of twenty columns, and what their repetitions read."""
    data = np.random.default_rng(0).normal(size=(20_000, 20))
    gradient = sa.compile(sa.grad(lambda w: np.sum(np.sin(data * w) * np.exp(data - w))), np.zeros(20), cache=False)
    assert frames(gradient.assembly)["kernel.region0.part"] == vector_bits() // 8


def test_a_call_keeps_all_that_is_alive():
    lanes = Lanes(vector_bits() // 64)
    call = ("call", "exp", 0)
    assert aligned(lanes, [call]) == aligned(Lanes(64), [call]) == f" alignstack({vector_bits() // 8})"


def test_few_values():
    """A short body keeps nothing, and a number needs no alignment."""
    x = np.ones(10_000)
    kernel = sa.compile(sa.grad(lambda x: np.sum(x**3)), x, cache=False)
    assert not any(value for name, value in frames(kernel.assembly).items() if "region" in name)
    assert aligned(Lanes(1), [("call", "exp", 0)] * 100) == ""
