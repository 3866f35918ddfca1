"""The candidates of the rows, by name."""

from benchmarks.peers.base import Candidate
from benchmarks.structure.flat_peers import FlatCasadi, FlatCasadiC, FlatHeyoka, FlatSymengine
from benchmarks.structure.mapped_casadi import MappedCasadi
from benchmarks.structure.ours import Symad, SymadAlways, SymadFast, SymadNever, SymadRows, SymadThreads
from benchmarks.structure.vectorised_jax import VectorisedJax

OURS: dict[str, type[Candidate]] = {
    "auto": Symad,
    "fast": SymadFast,
    "threads": SymadThreads,
    "always": SymadAlways,
    "rows": SymadRows,
    "never": SymadNever,
}
PEERS: dict[str, type[Candidate]] = {
    "casadi": FlatCasadi,
    "casadi-map": MappedCasadi,
    "casadi-gcc": FlatCasadiC,
    "heyoka": FlatHeyoka,
    "symengine": FlatSymengine,
    "jax": VectorisedJax,
}
FLAT = ("casadi", "casadi-gcc", "heyoka", "symengine")  # see every operation
CANDIDATES = OURS | PEERS
