"""From functions to kernels. Parts that loaded kernels rarely need are imported on demand."""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
