"""Type variables of functions that return a function with the signature of their argument.

>>> from symad.transforms.first_order import grad
>>> def energy(x: float, scale: float = 1.0) -> float:
...     return scale * x * x
>>> grad(energy)(3.0, scale=2.0)  # for a type checker a function of a float and of scale, which returns a float
12.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")  # the parameters of a function, or those behind the first one
R = TypeVar("R")  # its result
if TYPE_CHECKING:  # a default needs Python 3.13 outside of type checkers
    from typing_extensions import TypeVar as TypeVarWithDefault

    T = TypeVarWithDefault("T", bound=Any, default=Any)  # the first parameter; whatever it is, where it has no type
else:
    T = TypeVar("T")
