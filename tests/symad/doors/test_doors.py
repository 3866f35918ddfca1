"""What the users of other tools call most, with symad's functions: it works, or is refused by name."""

from __future__ import annotations

import pytest

from tests.support.doors import ROWS, outcome


@pytest.mark.filterwarnings("ignore")  # what other tools warn of is theirs
@pytest.mark.parametrize(("tool", "name"), ROWS)
def test_calls_of_users_of_other_tools(tool: str, name: str) -> None:
    pytest.importorskip(tool, reason=f"{tool} is no part of the tests' environment")
    assert outcome(tool, name) in ("works", "refused")
