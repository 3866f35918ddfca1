"""From programs to kernels: building, calls, batches, storage, exports.

What compiles is imported when it is asked for here: who loads machine code needs none of it.
"""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
