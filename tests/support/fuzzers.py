"""The fuzzers, by name: how each makes programs, and what it compares."""

from __future__ import annotations

from functools import partial

from tests.support import (
    arrays_fuzz,
    bodies_fuzz,
    chains_fuzz,
    derive_fuzz,
    encoded_fuzz,
    labels_fuzz,
    large_fuzz,
    merged_fuzz,
    modes_fuzz,
    nested_fuzz,
    numbers_fuzz,
    points_fuzz,
    rolling_fuzz,
    second_fuzz,
    steps_fuzz,
    sums_fuzz,
)
from tests.support.fuzz_programs import Words
from tests.support.fuzzing import Fuzzer

_second = {"written": second_fuzz.written, "read": second_fuzz.read}
_derive = {"written": derive_fuzz.written, "read": derive_fuzz.read}

FUZZERS = {
    "arrays": Fuzzer(arrays_fuzz.make, arrays_fuzz.check),
    "arrays-odd": Fuzzer(arrays_fuzz.make, arrays_fuzz.check_odd),
    "arrays-merged": Fuzzer(arrays_fuzz.make, merged_fuzz.check),
    "arrays-large": Fuzzer(large_fuzz.make, large_fuzz.check),
    "arrays-numbers": Fuzzer(large_fuzz.make, numbers_fuzz.check),
    "arrays-modes": Fuzzer(modes_fuzz.make, modes_fuzz.check),
    "bodies": Fuzzer(bodies_fuzz.make, bodies_fuzz.check),
    "bodies-native": Fuzzer(bodies_fuzz.make, partial(bodies_fuzz.check, native=True)),
    "nested": Fuzzer(nested_fuzz.make, nested_fuzz.check),
    "words": Fuzzer(partial(nested_fuzz.make, kind=Words), nested_fuzz.check),
    "rolling": Fuzzer(rolling_fuzz.make, rolling_fuzz.check),
    "rolling-native": Fuzzer(rolling_fuzz.make, partial(rolling_fuzz.check, native=True)),
    "steps": Fuzzer(steps_fuzz.make, steps_fuzz.check),
    "chains": Fuzzer(chains_fuzz.make, chains_fuzz.check, chains_fuzz.written, chains_fuzz.read),
    "sums": Fuzzer(sums_fuzz.make, sums_fuzz.check, sums_fuzz.written, sums_fuzz.read),
    "derive": Fuzzer(derive_fuzz.make, derive_fuzz.check, **_derive),
    "derive-native": Fuzzer(derive_fuzz.make, partial(derive_fuzz.check, native=True), **_derive),
    "labels": Fuzzer(labels_fuzz.make, labels_fuzz.check),
    "encoder": Fuzzer(encoded_fuzz.make, encoded_fuzz.check, encoded_fuzz.written, encoded_fuzz.read),
    "points": Fuzzer(derive_fuzz.make, points_fuzz.check, **_derive),
    "points-bodies": Fuzzer(bodies_fuzz.make, points_fuzz.check_bodies),
    "hessian": Fuzzer(partial(second_fuzz.make, scalar=True), second_fuzz.check_hessian, **_second),
    "jacobian": Fuzzer(partial(second_fuzz.make, scalar=False), second_fuzz.check_jacobian, **_second),
}
