"""Random programs; many more with `python -m tests.fuzz hessian 1000`."""

import pytest

from tests.support.draws import seeded
from tests.support.second_fuzz import check_hessian, check_jacobian, make


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("check", [check_hessian, check_jacobian])
@pytest.mark.thinned
def test_random_programs(check, seed):
    assert check(make(seeded(seed), scalar=check is check_hessian)) == "in loops"
