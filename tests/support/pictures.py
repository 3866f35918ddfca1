"""Pictures of pages for the documentation: PNG files with a palette, a third as large as what a browser writes."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numba
import numpy as np

LARGEST = 100_000  # bytes of a picture in the repository
COLOURS = 256
APART = 32  # shades of red, green and blue that are told apart
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {2: 3, 6: 4}  # of the kinds of PNG that a browser writes


def pack(path: Path) -> int:
    """Give a PNG file a palette, and return its size; AssertionError where it is still too large for the repository."""
    path.write_bytes(with_palette(pixels(path.read_bytes())))
    size = path.stat().st_size
    assert size <= LARGEST, f"{path.name} has {size} bytes: show less of it"
    return size


def pixels(png: bytes) -> Any:
    """Return the pixels of a PNG file as a browser writes it: rows, columns, red, green and blue."""
    assert png.startswith(_SIGNATURE)
    place, content = len(_SIGNATURE), {b"IDAT": b""}
    while place < len(png):
        (length,), kind = struct.unpack(">I", png[place : place + 4]), png[place + 4 : place + 8]
        content[kind] = content.get(kind, b"") + png[place + 8 : place + 8 + length]
        place += length + 12
    width, height, depth, kind_of_colour, _, _, interlaced = struct.unpack(">IIBBBBB", content[b"IHDR"])
    assert (depth, interlaced) == (8, 0)
    channels = _CHANNELS[kind_of_colour]
    raw = np.frombuffer(zlib.decompress(content[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + width * channels)
    return _unfiltered(raw[:, 0], raw[:, 1:], channels).reshape(height, width, channels)[:, :, :3]


def with_palette(picture: Any) -> bytes:
    """Return a PNG file of at most COLOURS colours: of those alike the most frequent, for a pixel the nearest."""
    height, width, _ = picture.shape
    colours, places, counts = np.unique(picture.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    _, first = np.unique(colours[order] // (256 // APART), axis=0, return_index=True)
    kept = colours[order][np.sort(first)[:COLOURS]]
    nearest = np.array([np.argmin(np.sum((kept.astype(int) - colour) ** 2, axis=1)) for colour in colours.astype(int)])
    rows = nearest[places.ravel()].astype(np.uint8).reshape(height, width)
    raw = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", kept.tobytes()), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


@numba.njit
def _unfiltered(filters: Any, rows: Any, channels: int) -> Any:
    """Undo the filters of PNG: each byte was written as what it is more than the bytes left of it and above it."""
    height, width = rows.shape
    made = np.zeros((height + 1, width + channels), dtype=np.uint8)  # with a row above and a pixel on the left
    for y in range(height):
        for x in range(width):
            left, above = np.int64(made[y + 1, x]), np.int64(made[y, x + channels])
            corner = np.int64(made[y, x])
            guess = np.int64(0)
            if filters[y] == 1:
                guess = left
            elif filters[y] == 2:
                guess = above
            elif filters[y] == 3:
                guess = (left + above) // 2
            elif filters[y] == 4:
                to_left, to_above = abs(above - corner), abs(left - corner)
                to_corner = abs(left + above - 2 * corner)
                if to_left <= to_above and to_left <= to_corner:
                    guess = left
                else:
                    guess = above if to_above <= to_corner else corner
            made[y + 1, x + channels] = (np.int64(rows[y, x]) + guess) % 256
    return made[1:, channels:].copy()
