"""Random programs against oracles: `python -m tests.fuzz NAME COUNT [--seed S] [--seconds T]`.

Prints what became of them. What fails is shrunk, printed as a small program, and kept in `tests/regressions`.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import takewhile

os.environ.setdefault("SYMAD_STRICT", "1")  # as in every test

from tests.support.fuzzers import FUZZERS
from tests.support.fuzzing import Failure, campaign, save
from tests.support.jax_oracle import with_jax


def main() -> int:
    """Run one campaign."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("name", choices=sorted(FUZZERS))
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after so long")
    parser.add_argument("--no-shrink", action="store_true", help="print failing programs as they are")
    parser.add_argument("--no-keep", action="store_true", help="do not save failing programs in tests/regressions")
    parser.add_argument("--jax", action="store_true", help="compare with JAX instead, which has to be installed")
    asked = parser.parse_args()
    fuzzer = with_jax(FUZZERS[asked.name], asked.name) if asked.jax else FUZZERS[asked.name]
    began = time.monotonic()
    every = range(asked.seed, asked.seed + asked.count)
    seeds = takewhile(lambda _: time.monotonic() - began < asked.seconds, every)

    def report(failure: Failure) -> None:
        print(failure, flush=True)
        if not asked.no_keep:
            print(f"kept: {save(failure)}", flush=True)

    done = campaign(asked.name, fuzzer, seeds, shrink=not asked.no_shrink, report=report)
    print(f"{asked.name}: {done}; {time.monotonic() - began:.0f} s")
    return bool(done.failures)


if __name__ == "__main__":
    raise SystemExit(main())
