"""From programs to kernels: building, calls, batches, storage, exports.

The compiler is imported when a name here is first used: loading machine code does not need it.
"""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
