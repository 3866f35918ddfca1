"""Kernels in files, pickles and copies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

from codegen.machine import forms
from codegen.machine.calls.callables import CFunction
from codegen.machine.calls.conventions import adapter_text, label_of


class KeptKernel(CFunction):
    """What kernels offer to whoever keeps them."""

    __slots__ = ()

    def save(self, path: str | os.PathLike[str], *, code: bool = True) -> None:
        """Write the kernel into a file, completely or not at all; `symad.load` or `codegen.load_kernel` reads it.

        It holds the program and its options as plain data, so that it can be loaded on any machine. With `code` there
        is machine code behind them, under a mark made with this user's key (`~/.local/share/symad/key`, or in
        XDG_DATA_HOME; made when it is first needed): processes of the same user run it on such a machine, without SymPy
        and LLVM.
        ArgumentError for a file that cannot be written, and containers other than tuples, lists, dicts and None.
        """
        forms.write_kernel(path, self.stored() if code else self.portable())

    def stored(self, adapters: Sequence[tuple[str, int]] = ()) -> bytes:
        """Return the bytes that `save` writes; adapters with machine code: signatures and numbers of bound inputs."""
        if self._compiled.source.file is not None:
            return self._compiled.source.file
        containers = forms.containers_of(self.pack, self.unpack)
        texts = {label_of(*adapter): adapter_text(self._compiled.declared, *adapter) for adapter in adapters}
        return forms.with_code(self.portable(), self._compiled, containers, texts)

    def portable(self) -> bytes:
        """Return the part of it that is good for every machine."""
        return forms.encode(self._compiled.program, self._compiled.options, forms.containers_of(self.pack, self.unpack))

    def __reduce__(self) -> tuple[Any, ...]:
        data = forms.encode(self._compiled.program, self._compiled.options)
        return self._compiled.source.revive, (data, self.pack, self.unpack)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
