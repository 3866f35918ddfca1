"""Random rolled programs: derivatives as loops, with and without checkpoints, against those of straight lines."""

from __future__ import annotations

import pytest
from derive_fuzz import check


@pytest.mark.parametrize("seed", range(24))
def test_random_program(seed: int) -> None:
    check(seed, native=seed < 4)
