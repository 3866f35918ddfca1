"""A ratchet for the size of the house: no room has more lines than `room_sizes.txt` allows.

A limit may fall at any time. It rises only with a reason behind the number.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
SIZES = Path(__file__).with_name("room_sizes.txt")


def limits() -> dict[str, int]:
    """Return the limits by room; what stands behind a number is the reason of its last rise."""
    lines = (line.split(maxsplit=2) for line in SIZES.read_text(encoding="utf-8").splitlines() if line[:1] != "#")
    return {room: int(number) for room, number, *_ in lines}


def sizes() -> dict[str, int]:
    """Return the lines of Python files by room: a folder of `symad` or `codegen`, or the files beside these."""
    found: dict[str, int] = {}
    for package in ("symad", "codegen"):
        for path in (ROOT / package).rglob("*.py"):
            folders = path.relative_to(ROOT).parts[:-1]
            room = "/".join(folders[: 3 if "classroom" in folders else 2])
            found[room] = found.get(room, 0) + len(path.read_text(encoding="utf-8").splitlines())
    return found


def test_no_room_grows() -> None:
    allowed = limits()
    grown = {room: (lines, allowed.get(room, 0)) for room, lines in sizes().items() if lines > allowed.get(room, 0)}
    assert not grown, f"lines and limits: {grown}; delete something, or say in {SIZES.name} what the lines are for"


def test_limits_follow_what_was_deleted() -> None:
    found = sizes()
    loose = {room: (found.get(room, 0), limit) for room, limit in limits().items() if limit > found.get(room, 0) + 50}
    assert not loose, f"lines and limits: {loose}; lower the limits in {SIZES.name}"
