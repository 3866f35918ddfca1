"""The processor is asked itself, and says what LLVM says of it."""

from __future__ import annotations

import pytest

from codegen import processor
from codegen.engine import host
from codegen.errors import WorkbenchError

X86 = {"sse2", *processor.BITS}


def test_features_are_those_that_llvm_finds() -> None:
    found = {name[1:] for name in host()[1].split(",") if name.startswith("+")}
    assert processor.features() == (found & X86 if processor.is_x86_64_linux() else found)


def test_llvm_is_asked_where_no_code_of_ours_may_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise WorkbenchError("machine code", why="the system does not let it be run")

    known = processor.features()
    monkeypatch.setattr(processor, "MappedCode", refused)
    assert processor.features.__wrapped__() >= known


@pytest.mark.skipif(not processor.is_x86_64_linux(), reason="machine code for x86-64 under Linux")
@pytest.mark.parametrize(
    ("highest", "words", "kept", "has"),
    [
        (7, {1: 1 << 12 | 1 << 27 | 1 << 28, 7: 1 << 5 | 1 << 16}, 0xE6, {"avx", "fma", "avx2", "avx512f"}),
        (7, {1: 1 << 12 | 1 << 27 | 1 << 28, 7: 1 << 5 | 1 << 16}, 0x06, {"avx", "fma", "avx2"}),
        (7, {1: 1 << 12 | 1 << 27 | 1 << 28, 7: 1 << 5 | 1 << 16}, 0x02, set()),
        (7, {1: 1 << 12 | 1 << 28, 7: 1 << 5 | 1 << 16}, 0xE6, set()),  # nobody says what is kept
        (1, {1: 1 << 12 | 1 << 27 | 1 << 28, 7: 1 << 5 | 1 << 16}, 0xE6, {"avx", "fma"}),
    ],
)
def test_what_the_system_does_not_keep_is_not_there(
    highest: int, words: dict[int, int], kept: int, has: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "ASKED", asked(highest, words))
    monkeypatch.setattr(processor, "KEPT", b"\xb8" + kept.to_bytes(4, "little") + b"\xc3")  # mov eax, kept; ret
    assert processor.own_features() == has | {"sse2"}


def asked(highest: int, words: dict[int, int]) -> bytes:
    """Return code that answers as another processor's: eax of leaf 0, ecx of leaf 1, ebx of leaf 7."""
    zeros = bytes.fromhex("31c0 488906 48894608")  # xor eax, eax; all words are 0
    code = zeros
    for leaf, place, value in ((0, 0, highest), (1, 8, words[1]), (7, 4, words[7])):
        store = b"\xc7\x46" + bytes([place]) + value.to_bytes(4, "little")  # mov dword [rsi+place], value
        code += b"\x83\xff" + bytes([leaf]) + b"\x75" + bytes([len(store)]) + store  # cmp edi, leaf; jne over it
    return code + b"\xc3"
