"""codegen: compiles a program of SymPy heads, straight lines or loops, to a native kernel; a fast `lambdify`."""

from codegen.later import later

__getattr__, __dir__, __all__ = later(__name__)
