"""Kernels, and all ways to call one. What only compiles is imported when it is asked for here."""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
