"""The function that a transform returns. It is pickled as the call of its transform."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, update_wrapper
from types import MethodType
from typing import Any

from symad.reach.reach_walk import ROWS
from symad.tracing.calling.function_names import name_of

Function = Callable[..., Any]


class Transformed(partial[Any]):
    """A function that a transform made of another one, f; as a partial function it costs no extra call.

    `made_by` is the transform, with its arguments and its options.

    >>> import pickle, math
    >>> from symad import grad
    >>> pickle.loads(pickle.dumps(grad(math.sin)))(0.0)
    1.0
    """

    __name__: str
    __qualname__: str
    made_by: tuple[Function, tuple[Any, ...], dict[str, Any]] | None = None

    @classmethod
    def of(cls, function: Function, f: Function) -> Transformed:
        """Return a function with the module and names of f; an object that is called has the name of its class."""
        transformed: Any = update_wrapper(cls(function), f, ("__module__", "__qualname__"), ())
        transformed.__name__ = name_of(f)
        return transformed  # type: ignore[no-any-return]

    def with_function(self, function: Function) -> Transformed:
        """Return the same with another function inside."""
        twin = type(self)(function)
        vars(twin).update(vars(self))
        return twin

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        named: Any = sys.modules.get(self.__module__)
        path: str = getattr(self, "__qualname__", "")  # objects that are called have none
        for part in path.split("."):
            named = getattr(named, part, None)
        return path if named is self else (_made, self.made_by)  # f was decorated by the transform

    def __repr__(self) -> str:
        return f"<{self.__name__}>"


def _made(transform: Function, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return transform(*args, **options)


ROWS[id(Transformed)] = lambda walk, value, trail: walk.lead([value.func], trail)
