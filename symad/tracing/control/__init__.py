"""Loops written down: sums, maps and chains of a body that is traced once where a function is compiled."""

from symad.tracing.control.maps import vmap
from symad.tracing.control.scans import fori_loop, scan
from symad.tracing.control.whiles import while_loop
from symad.tracing.control.written_sums import sum_over

__all__ = ["fori_loop", "scan", "sum_over", "vmap", "while_loop"]
