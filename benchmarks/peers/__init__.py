"""The candidates: one class each, with `build(problem) -> Evaluator`. A new peer is one more class in `CANDIDATES`.

A peer's library is imported by name when the peer is asked for, so a missing one is reported and the rest still runs.
Each peer is used the way that is fastest for it; the class says which.
"""

from benchmarks.peers.base import Candidate, Evaluator, Limits, TooLargeError
from benchmarks.peers.casadi import FLAGS, Casadi, CasadiC
from benchmarks.peers.heyoka import Heyoka, HeyokaFast
from benchmarks.peers.jax import Jax
from benchmarks.peers.numba import Numba
from benchmarks.peers.ours import Symad, SymadFast, SymadLines, SymadLinesTier, SymadTier
from benchmarks.peers.symengine import Symengine

CANDIDATES: dict[str, type[Candidate]] = {
    "symad": Symad,
    "symad-fast": SymadFast,
    "symad-tier": SymadTier,
    "casadi": Casadi,
    "casadi-gcc": CasadiC,
    "heyoka": Heyoka,
    "heyoka-fast": HeyokaFast,
    "symengine": Symengine,
    "jax": Jax,
    "numba": Numba,
}
LINES: dict[str, type[Candidate]] = {"symad-lines": SymadLines, "symad-lines-tier": SymadLinesTier}  # builds only
OURS = ("symad", "symad-fast", "symad-tier")
AHEAD_OF_TIME = ("casadi-gcc",)  # needs a C compiler

__all__ = [
    "AHEAD_OF_TIME", "CANDIDATES", "FLAGS", "LINES", "OURS", "Candidate", "Evaluator", "Limits", "TooLargeError",
]  # fmt: skip
