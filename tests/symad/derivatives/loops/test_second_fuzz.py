"""Random programs; many more with `python -m tests.support.second_fuzz`."""

import pytest

from tests.support.second_fuzz import check_hessian, check_jacobian


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("check", [check_hessian, check_jacobian])
def test_random_programs(check, seed):
    assert check(seed)
