"""Kernels of several threads: nothing waits for ever, and machine code that all use is made once."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import codegen
from codegen.engine import Once

ROOT = Path(codegen.__file__).parents[1]


def test_ten_seconds_of_compiling_and_collecting_from_8_threads():
    command = [sys.executable, "-m", "tests.support.kernel_threads", "10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=200)
    assert not done.returncode, done.stdout + done.stderr
    assert ", 0 wrong" in done.stdout


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
