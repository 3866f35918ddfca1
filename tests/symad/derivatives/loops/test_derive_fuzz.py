"""Random rolled programs: derivatives as loops, with and without checkpoints, against those of straight lines."""

from __future__ import annotations

import pytest

from symad.derivatives.loops import checkpoints
from tests.support import derive_fuzz
from tests.support.derive_fuzz import check, make
from tests.support.draws import seeded


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.thinned
def test_random_program(seed: int) -> None:
    check(make(seeded(seed)), native=seed < 4)


@pytest.mark.parametrize("seed", [5, 33, 75, 120, 168, 192, 218, 237])
@pytest.mark.thinned
def test_random_program_in_segments_of_segments(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were wrong when it was not known of inner segments that they are segments."""
    monkeypatch.setattr(checkpoints, "FEW", 2)
    monkeypatch.setattr(checkpoints, "SIXTEEN", 2)
    monkeypatch.setattr(derive_fuzz, "POLICIES", ("none",))
    check(make(seeded(seed)))
