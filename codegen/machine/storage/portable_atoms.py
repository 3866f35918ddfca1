"""The atoms of a program as data: exact numbers, and the few constants that have names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath.libmp as libmp
import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.errors import ArgumentError
from codegen.heads import negative_zero
from codegen.ir.program import atom_key

NAMED: dict[str, sp.Basic] = {
    "pi": sp.pi, "e": sp.E, "euler_gamma": sp.EulerGamma, "golden_ratio": sp.GoldenRatio, "catalan": sp.Catalan,
    "tribonacci": sp.TribonacciConstant, "inf": sp.oo, "-inf": -sp.oo, "nan": sp.nan, "-0.0": negative_zero,
    "true": sp.true, "false": sp.false,
}  # fmt: skip
_NAMES = {atom: name for name, atom in NAMED.items()}
DOUBLE = 53  # bits of a Float that is kept among the float64
LARGEST_DEGREE = 100  # of a polynomial whose root is a constant: finding it again takes seconds
LARGEST_EXPONENT = 2**31


def encode_atoms(leaves: Sequence[sp.Basic]) -> tuple[list[list[Any]], NDArray[np.float64], list[int]]:
    """Return the distinct atoms (data for JSON, and float64 for those that are), and which of them each leaf is.

    The float64 are numbered after the others. ArgumentError for an atom that is no real number.

    >>> encode_atoms([sp.Rational(1, 3), sp.Float(0.5), sp.pi, sp.Float(0.5)])
    ([['rational', '1', '3'], ['constant', 'pi']], array([0.5]), [0, 2, 1, 2])
    """
    kept: dict[Any, int] = {}
    doubles: dict[float, int] = {}
    atoms: list[list[Any]] = []
    places: list[tuple[bool, int]] = []
    for leaf in leaves:
        value = _double(leaf)
        if value is not None:
            places.append((True, doubles.setdefault(value, len(doubles))))
            continue
        key = atom_key(leaf)
        if key not in kept:
            kept[key] = len(atoms)
            atoms.append(_encode(leaf))
        places.append((False, kept[key]))
    numbers = [place + len(atoms) if is_double else place for is_double, place in places]
    return atoms, np.array(list(doubles), dtype=np.float64), numbers


def decode_atoms(atoms: Sequence[Any], doubles: NDArray[np.float64]) -> list[sp.Basic]:
    """Return the atoms that `encode_atoms` has written, all of them; ValueError or TypeError for anything else.

    >>> decode_atoms([["integer", "-ff"]], np.array([0.5]))
    [-255, 0.500000000000000]
    """
    if not np.isfinite(doubles).all():
        raise ValueError("a float that is not finite")
    floats = [sp.Float._new(libmp.from_float(value), DOUBLE, zero=False) for value in doubles.tolist()]
    return [_DECODERS[kind](*parts) for kind, *parts in atoms] + floats


def _double(leaf: sp.Basic) -> float | None:
    """Return the float64 that a Float of 53 bits is, None for any other atom and where it is none."""
    if not isinstance(leaf, sp.Float) or leaf._prec != DOUBLE:
        return None
    value = float(leaf)
    return value if abs(value) < np.inf and libmp.from_float(value) == leaf._mpf_ else None


def _encode(atom: sp.Basic) -> list[Any]:
    if isinstance(atom, sp.Integer):
        return ["integer", f"{int(atom):x}"]
    if isinstance(atom, sp.Rational):
        return ["rational", f"{int(atom.p):x}", f"{int(atom.q):x}"]
    if isinstance(atom, sp.Float):
        sign, mantissa, exponent, _ = atom._mpf_
        return ["float", f"{-int(mantissa) if sign else int(mantissa):x}", int(exponent), int(atom._prec)]
    if isinstance(atom, sp.CRootOf) and atom.poly.degree() <= LARGEST_DEGREE:
        return ["root", [f"{int(number):x}" for number in atom.poly.all_coeffs()], int(atom.index)]
    if atom not in _NAMES:
        raise ArgumentError(f"{type(atom).__name__} {atom}", why="files keep real numbers only")
    return ["constant", _NAMES[atom]]


def _rational(p: str, q: str) -> sp.Basic:
    made = sp.Rational(_whole(p), _whole(q))
    if not isinstance(made, sp.Rational) or made.q == 1:
        raise ValueError("a rational number that is an integer, or none")
    return made


def _float(mantissa: str, exponent: int, precision: int) -> sp.Basic:
    if type(exponent) is not int or type(precision) is not int or precision < 1 or abs(exponent) > LARGEST_EXPONENT:
        raise ValueError(f"a float of exponent {exponent} and {precision} bits")
    whole = _whole(mantissa)
    if abs(whole).bit_length() > precision:
        raise ValueError(f"a float of more than {precision} bits")
    return sp.Float._new(libmp.from_man_exp(whole, exponent), precision, zero=False)


def _root(coefficients: list[str], index: int) -> sp.Basic:
    if not 2 <= len(coefficients) <= LARGEST_DEGREE + 1 or type(index) is not int:
        raise ValueError(f"a root of a polynomial with {len(coefficients)} coefficients")
    polynomial = sp.Poly([_whole(number) for number in coefficients], sp.Symbol("x"))
    try:
        made = sp.CRootOf(polynomial, index, radicals=False)
    except (sp.PolynomialError, NotImplementedError) as error:
        raise ValueError("a root of a polynomial that has none") from error
    if not isinstance(made, sp.CRootOf) or not made.is_real:
        raise ValueError("a root that is no real number of its own")
    return made


def _whole(text: str) -> int:
    """Return the integer of hexadecimal digits, of which there may be any number."""
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} instead of digits")
    return int(text, 16)


_DECODERS: dict[str, Callable[..., sp.Basic]] = {
    "integer": lambda digits: sp.Integer(_whole(digits)),
    "rational": _rational,
    "float": _float,
    "root": _root,
    "constant": lambda name: NAMED[name],
}
