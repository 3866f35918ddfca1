"""Names in C: which ones an exported function may have, and parameter names made from the names of arrays."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable

from codegen.errors import ArgumentError

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
alignas alignof bool constexpr false nullptr static_assert thread_local true typeof asm
and and_eq bitand bitor catch char8_t char16_t char32_t class compl concept const_cast consteval constinit
co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not
not_eq operator or or_eq private protected public reinterpret_cast requires static_cast template this throw try
typeid typename using virtual wchar_t xor xor_eq
"""
_UNARY = """
acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma log log10 log1p
log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc
"""
_BINARY = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"
_OTHERS = """
main malloc free memset memcmp printf isnan isunordered signbit NAN INFINITY NULL EOF errno assert stdin stdout stderr
linux unix i386 I
"""  # functions that are used, and macros

KEYWORDS = frozenset(_KEYWORDS.split())  # of C and of C++, whose compilers read the header too
MATH = {**dict.fromkeys(_UNARY.split(), 1), **dict.fromkeys(_BINARY.split(), 2), "fma": 3}  # in C99's math.h: arity
BESSEL = frozenset({"j0", "j1", "y0", "y1"})  # X/Open's addition to math.h
TAKEN = frozenset({*MATH, *BESSEL, *_OTHERS.split()})
MACRO = re.compile(  # of the headers that are included, and of those that go with them
    r"(?:M|DBL|FLT|LDBL|FP|HUGE|MATH|EXIT|SEEK|L|P)_\w+|\w+_(?:MAX|MIN|BIT|DIG|ENDIAN)|BUFSIZ|MAXFLOAT|complex"
    r"|math_errhandling"
)
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def check_name(name: str) -> str:
    """Return a name that can be that of a C function; ArgumentError for any other.

    >>> check_name("energy_hessian")
    'energy_hessian'
    """
    why = (
        "it is no identifier of C (letters, digits and _, a letter first)"
        if not IDENTIFIER.fullmatch(name)
        else "it is a keyword of C or C++"
        if name in KEYWORDS
        else "the C library has a function or a macro of this name"
        if name in TAKEN or MACRO.fullmatch(name) or _in_process(name)
        else "a file of another name ends so"
        if name.endswith(("_test", "_sparsity"))
        else ""
    )
    if why:
        raise ArgumentError(f"{name!r} as name of a C function", why=why, do='give another: name="..."')
    return name


def _in_process(name: str) -> bool:
    """Whether a library of this process has a function of this name, which an exported one would replace."""
    try:
        return hasattr(ctypes.CDLL(None), name)
    except (OSError, TypeError):  # Windows
        return False


def parameter_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return different C names that resemble the given ones; none ends with _, as names inside of the functions do.

    >>> parameter_names(["x", "p['w'][0]", "x", "int", "M_PI"])
    ['x', 'p_w_0', 'x_2', 'int_value', 'M_PI_value']
    """
    reserved = {*KEYWORDS, *TAKEN, *taken}
    used: set[str] = set()
    found = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "x"
        plain = plain if plain[0].isalpha() else f"x{plain}"
        plain = f"{plain}_value" if plain in reserved or MACRO.fullmatch(plain) else plain
        unique, number = plain, 2
        while unique in used:
            unique, number = f"{plain}_{number}", number + 1
        used.add(unique)
        found.append(unique)
    return found
