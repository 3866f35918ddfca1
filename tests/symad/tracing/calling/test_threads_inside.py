"""Threads that a function starts while it is differentiated."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest

import symad as sa
from symad.errors import EscapedValueError, TraceError

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def _often_switched():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def part(x, k):
    total = 0.0
    for j in range(20):
        total = total + np.sin(x[k % 3] * (k + j)) * np.cos(x[(k + 1) % 3] / (k + j + 1))
    return total


def alone(x):
    return sum(part(x, k) for k in range(40))


def shared(x):
    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(lambda k: part(x, k), range(40)))


@pytest.mark.usefixtures("_often_switched")
@pytest.mark.parametrize("transform", [sa.grad, sa.hessian, lambda f: lambda x: sa.compile(sa.grad(f), x)(x)])
def test_numpy_in_threads_is_numpy(transform):
    np.testing.assert_allclose(transform(shared)(X), transform(alone)(X), rtol=1e-11, atol=1e-11)


def nested(x, run):
    def of(k):
        return sa.derivative(lambda y: y**2 * x[k] * part(x, k))(x[0])

    with ThreadPoolExecutor(4) as pool:
        return sum(task.result() for task in [pool.submit(*run(), of, k) for k in range(12)])


def with_context():
    return (copy_context().run,)


def as_it_is():
    return ()


def test_transforms_in_threads_carry_the_context():
    def x_of(x):
        return np.concatenate([x] * 4)

    right = sa.grad(lambda x: sum(2 * x[0] * x[k % 3] * part(x_of(x), k) for k in range(12)))(X)
    np.testing.assert_allclose(sa.grad(lambda x: nested(x_of(x), with_context))(X), right, rtol=1e-12)


def test_transforms_in_threads_without_it_are_refused():
    with pytest.raises(TraceError, match=r"two independent traces met.*run its work by contextvars\.copy_context"):
        sa.grad(lambda x: nested(np.concatenate([x] * 4), as_it_is))(X)


def test_a_thread_that_goes_on_after_the_function_is_refused():
    with ThreadPoolExecutor(1) as pool:
        kept = []
        sa.grad(lambda x: (kept.append(x), x[0])[1])(X)
        with pytest.raises(EscapedValueError, match="after its derivative level closed"):
            pool.submit(copy_context().run, part, kept[0], 1).result()
