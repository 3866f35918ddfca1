"""Loops written down: sums, maps and chains of a body that is traced once where a function is compiled."""

from symad.tracing.constructs.maps import vmap
from symad.tracing.constructs.scans import fori_loop, scan
from symad.tracing.constructs.sums import sum_over
from symad.tracing.constructs.whiles import while_loop

__all__ = ["fori_loop", "scan", "sum_over", "vmap", "while_loop"]
