"""Doors to other tools: solvers, integrators, array libraries. They get kernels.

What a loaded problem rarely needs is imported when it is asked for here.
"""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
