"""Forms of a kernel beside its machine code for one point: what makes them is imported when one is asked for.

So a process that loads a kernel and calls it imports neither SymPy nor LLVM.
"""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
