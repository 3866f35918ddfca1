"""What the functions of symad return: classes to name in annotations and in `isinstance`.

Their attributes are public; nobody makes one by hand.
"""

from codegen.later import later

__getattr__, __dir__ = later(__name__)
