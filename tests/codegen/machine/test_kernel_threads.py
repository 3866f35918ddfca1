"""Kernels of several threads: nothing waits for ever, and machine code that all use is made once."""

import threading
import time

from codegen.engine import Once
from tests.support import kernel_threads
from tests.support.campaigns import carried_out


def test_three_seconds_of_compiling_and_collecting_from_8_threads(monkeypatch):
    monkeypatch.setattr(kernel_threads, "SECONDS", 3.0)
    report = carried_out(kernel_threads.tries(0), 1)
    assert not report.failures, "\n".join(report.failures)


def test_threads_that_ask_at_the_same_time_get_the_same_library():
    def make(name):
        time.sleep(0.05)
        return [name]

    once, start, found = Once(make), threading.Barrier(8), []

    def ask():
        start.wait()
        found.append(once("driver"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(one is found[0] for one in found)
