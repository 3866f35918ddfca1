"""Share a batch among threads where measured times say that it pays.

A batch is cut into units, which the calling thread and those of `codegen.functions.workers` take one by one. Earlier
times of the same code decide how many threads there are.
"""

from __future__ import annotations

import struct
from math import isqrt

from codegen.functions.routine_values import Numbers

# Nanoseconds that a thread spends to wake another one: 13 us where machines are virtual, and the other then begins 12
# us later. With n threads for more than n^2 of them, the time of all is less than that of fewer.
WAKING = 10_000.0
SURE = 1e6  # nanoseconds of a batch that threads share even if its points were timed once only, in cold caches
FEWEST = 8  # units of a thread: at the end each waits for the last one
LONGEST = 2e5  # nanoseconds of a unit
LOOKS = 3

# int64 that threads share: kernel, table, arguments, results, address and bytes of the buffer of each, first point,
# number of points, points of a unit, units, threads, 1 where a unit failed; behind them, for each thread, how many
# units of its own part have been taken, and 1 where its buffer has what all points share
OWN = 12
SHARED: Numbers = {"UNITS": 9, "THREADS": 10, "FAILED": 11, "OWN": OWN}


class Timing:
    """Nanoseconds of a point on one thread: an estimate at first, then the least measured time.

    Batches on several threads may write at the same time: one measurement is lost.

    >>> timing = Timing(50.0)
    >>> timing.note(1000, 20e-6)
    >>> round(timing.nanoseconds), timing.threads(1000, 4), timing.threads(10**6, 4)
    (20, 1, 4)
    """

    __slots__ = ("_largest", "_looks", "nanoseconds")

    def __init__(self, nanoseconds: float) -> None:
        self.nanoseconds = nanoseconds
        self._largest = self._looks = 0

    @property
    def known(self) -> bool:
        """Whether points were timed."""
        return self._largest > 0

    def needs(self, count: int) -> bool:
        """Whether a batch of `count` points is to be timed: short batches predict long ones badly."""
        return self._looks < LOOKS or count > 2 * self._largest

    def note(self, count: int, seconds: float) -> None:
        """Record the time of `count` points."""
        if count > 2 * self._largest:
            self._looks = 0
        measured = 1e9 * seconds / count
        self.nanoseconds = min(self.nanoseconds, measured) if self.known else measured
        self._largest, self._looks = max(self._largest, count), self._looks + 1

    def threads(self, count: int, most: int) -> int:
        """Return how many threads share `count` points: one, until their time is known."""
        work = count * self.nanoseconds
        if most == 1 or not self.known or (work < SURE and self.needs(count)):
            return 1
        return max(1, min(most, isqrt(int(work / WAKING))))

    def unit(self, count: int, threads: int, width: int) -> int:
        """Return how many of `count` points make a unit: whole blocks.

        >>> Timing(10.0).unit(4096, 2, 8)
        256
        """
        blocks = -(-count // width)
        units = max(FEWEST * threads, int(count * self.nanoseconds / LONGEST))
        return width * -(-blocks // units)


def shared_bytes(threads: int) -> int:
    """Return the bytes that threads share."""
    return 8 * (OWN + 2 * threads)


def shared_words(
    kernel: int, table: int, shape: tuple[int, int], buffers: tuple[int, int], points: tuple[int, int], unit: int,
    threads: int,
) -> bytes:  # fmt: skip
    """Return the words that threads share, without each one's own."""
    return struct.pack("12q", kernel, table, *shape, *buffers, *points, unit, -(-points[1] // unit), threads, 0)


# A thread takes the units of its own part, the same ones each time, so that its caches have the data of the time
# before; then the rest of the other parts. One is left for each call: there are as many calls as units.
PART = """
define internal void @take_parts(ptr %parallel,ptr %shared,i64 %units,i64 %threads) nounwind {
 call void %parallel(ptr @part,ptr %shared,i64 %units,i64 %threads)
 ret void
}
define internal void @part(ptr %shared,i64 %call,i64 %thread) nounwind {
begin:
 %u=getelementptr i64,ptr %shared,i64 UNITS
 %units=load i64,ptr %u,align 8
 %t=getelementptr i64,ptr %shared,i64 THREADS
 %threads=load i64,ptr %t,align 8
 br label %look
look:
 %k=phi i64 [%thread,%begin],[%next,%other]
 %pair=mul i64 %k,2
 %word=add i64 %pair,OWN
 %place=getelementptr i64,ptr %shared,i64 %word
 %taken=atomicrmw add ptr %place,i64 1 monotonic
 %after=add i64 %k,1
 %before.all=mul i64 %k,%units
 %after.all=mul i64 %after,%units
 %first=udiv i64 %before.all,%threads
 %last=udiv i64 %after.all,%threads
 %unit=add i64 %first,%taken
 %mine=icmp ult i64 %unit,%last
 br i1 %mine,label %run,label %other
other:
 %wraps=icmp eq i64 %after,%threads
 %next=select i1 %wraps,i64 0,i64 %after
 br label %look
run:
 %failed=call i32 @unit(ptr %shared,i64 %unit,i64 %thread)
 %good=icmp eq i32 %failed,0
 br i1 %good,label %end,label %bad
bad:
 %f=getelementptr i64,ptr %shared,i64 FAILED
 store atomic i64 1,ptr %f monotonic,align 8
 br label %end
end:
 ret void
}
"""
for _name, _place in SHARED.items():
    PART = PART.replace(_name, str(_place))
