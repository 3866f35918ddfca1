"""Object files as one block: what needs a linker is refused by name."""

from __future__ import annotations

import ctypes
import os
import sys

import pytest

from codegen.code_memory import MappedCode, PlacedCode
from codegen.engine import compile_object
from codegen.object_files import UnknownObjectError, placed

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="object files are linked here for x86-64 Linux"
)
TABLE = """
@table=internal constant [4 x double] [double 1.5,double 2.5,double 3.5,double 4.5],align 64
declare i64 @twice(i64)
define double @looked_up(i64 %k) {
 %j=call i64 @twice(i64 %k)
 %p=getelementptr [4 x double],ptr @table,i64 0,i64 %j
 %v=load double,ptr %p
 ret double %v
}
"""
TWICE = "define i64 @twice(i64 %k) {\n%r=add i64 %k,%k\nret i64 %r\n}"


def test_objects_find_each_other_and_their_constants() -> None:
    found = placed([*compile_object(TABLE).parts, *compile_object(TWICE).parts])
    assert found.called == {}
    code = MappedCode(found)
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(code.addresses["looked_up"])
    assert [function(0), function(1)] == [1.5, 3.5]


def test_what_nobody_defines_is_called_elsewhere() -> None:
    (part,) = compile_object(TABLE).parts
    found = placed([part])
    assert set(found.called) == {"twice"}
    (place,) = found.called["twice"]
    behind = placed([part], PlacedCode(b"\0" * 16, {"first": 0}, {"twice": (8,)}, {}))
    assert behind.called["twice"][0] == 8
    assert behind.code[behind.entries["looked_up"] :][:8] == found.code[found.entries["looked_up"] :][:8]
    assert place > 0


@pytest.mark.parametrize(
    ("text", "processor", "why"),
    [
        ("@n=global i64 1\ndefine i64 @next() {\n%v=load i64,ptr @n\nret i64 %v\n}", "", "data that changes"),
        ("declare void @g()\ndefine void @f() {\ncall void @g()\nret void\n}", "host", "a relocation of kind"),
    ],
)
def test_what_needs_a_linker_is_refused(text: str, processor: str, why: str) -> None:
    with pytest.raises(UnknownObjectError, match=why):
        placed(compile_object(text, processor=processor).parts)


def test_two_functions_of_one_name_and_damage_are_refused() -> None:
    (part,) = compile_object(TWICE).parts
    with pytest.raises(UnknownObjectError, match="two functions twice"):
        placed([part, part])
    with pytest.raises(UnknownObjectError, match="no object file"):
        placed([b"nothing"])
    for end in range(64, len(part), 61):
        with pytest.raises(UnknownObjectError):
            placed([part[:end]])
