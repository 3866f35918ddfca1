"""Further forms of a kernel. The code that makes a form is imported at its first use.

So a process that loads a kernel and calls it imports neither SymPy nor LLVM.
"""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
