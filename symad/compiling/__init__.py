"""Compiling: from functions to kernels. What loaded kernels rarely need is imported when it is asked for here."""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
