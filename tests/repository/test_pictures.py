"""Pictures for the documentation: a palette changes what is seen by next to nothing, and none is large."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.book_pages import SCREENS, expansions
from tests.support.pictures import COLOURS, LARGEST, pixels, with_palette

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def filtered(picture: Any, kind: int) -> bytes:
    """Return the rows of a picture as PNG writes them with one kind of filter."""
    height, width, channels = picture.shape
    rows = picture.reshape(height, -1).astype(int)
    left = np.hstack([np.zeros((height, channels), int), rows[:, :-channels]])
    above = np.vstack([np.zeros((1, width * channels), int), rows[:-1]])
    corner = np.vstack([np.zeros((1, width * channels), int), left[:-1]])
    nearest = left + above - corner
    far = [abs(nearest - each) for each in (left, above, corner)]
    paeth = np.where((far[0] <= far[1]) & (far[0] <= far[2]), left, np.where(far[1] <= far[2], above, corner))
    guess = (0, left, above, (left + above) // 2, paeth)[kind]
    return b"".join(bytes([kind]) + row.astype(np.uint8).tobytes() for row in (rows - guess) % 256)


def png(picture: Any, raw: bytes) -> bytes:
    height, width, channels = picture.shape
    header = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    content = zlib.compress(raw)
    parts = (b"IHDR", header), (b"IDAT", content[:9]), (b"IDAT", content[9:]), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part)) for kind, part in parts
    )


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("kind", range(5))
def test_filters_are_undone(kind: int, channels: int) -> None:
    picture = np.random.default_rng(kind).integers(0, 256, (7, 5, channels), dtype=np.uint8)
    assert np.array_equal(pixels(png(picture, filtered(picture, kind))), picture[:, :, :3])


def test_a_palette_has_the_frequent_colours() -> None:
    source = np.random.default_rng(1)
    shades = source.permutation(16**3)[:COLOURS]  # far enough from each other to be told apart
    frequent = np.stack([shades // 256, shades // 16 % 16, shades % 16], axis=1).astype(np.uint8) * 16
    picture = frequent[source.integers(0, COLOURS, (60, 60))]
    made = with_palette(picture)
    place = made.index(b"PLTE")
    (length,) = struct.unpack(">I", made[place - 4 : place])
    palette = np.frombuffer(made[place + 4 : place + 4 + length], np.uint8).reshape(-1, 3)
    start = made.index(b"IDAT")
    (length,) = struct.unpack(">I", made[start - 4 : start])
    rows = np.frombuffer(zlib.decompress(made[start + 4 : start + 4 + length]), np.uint8).reshape(60, 61)
    assert np.array_equal(palette[rows[:, 1:]], picture)


def test_the_pictures_of_pages_are_there_and_small() -> None:
    names = {f"{name}{screen}.png" for name in expansions() for screen in SCREENS}
    assert names == {path.name for path in FOLDER.glob("book_*.png")}
    assert [path.name for path in FOLDER.glob("*.png") if path.name in names and path.stat().st_size > LARGEST] == []
    walked = list(FOLDER.glob("workbench*.png"))
    assert len(walked) > 10
    assert [path.name for path in walked if path.stat().st_size > LARGEST] == []
