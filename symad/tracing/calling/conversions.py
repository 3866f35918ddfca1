"""Recognise errors which say that code asked a traced value for a plain number."""

from __future__ import annotations

import re

from symad.errors import TraceError
from symad.tracing.calling.user_place import in_library_of_objects, library_function
from symad.tracing.values.traced import NumberError, StoreError, TextIndexError

_OBJECT_LOOPS = (  # texts of refusals of object arrays
    "loop of ufunc does not support argument", "Cannot cast ufunc", "Cannot cast array data from dtype('O')",
    "a traced scalar has no attribute 'dtype'",  # of a sum of objects
    "not supported for the input types", "No loop matching the specified signature", "must be real number",
    "object arrays are not supported",
    "<class 'numpy.object_'> not inexact",  # of np.finfo, which asks for the digits of an array's numbers
    "array type dtype('O') not supported", "array type not supported", "data type not supported",
    "Unsupported array type", "input type 'object' not supported", "'float' object has no attribute 'dtype'",
    "can't convert type 'Scalar'",
    "object __array__ method not producing an array",  # of an object that holds a traced array
    "can't unbox array from PyObject",  # by numba, which asks for the flags of arrays
    "has no attribute '__array_interface__'",
    "No matching signature found",  # by Cython, for functions of several types
    "Function call with ambiguous argument types", "Iterator operand or requested dtype holds references",
)  # fmt: skip
STORES = (  # texts of NumPy for a store or an index that failed
    "setting an array element with a sequence", "Error setting single item of array", "only integers, slices",
    "assignment destination is read-only", "output array is read-only",
)  # fmt: skip


def asks_for_numbers(error: BaseException) -> bool:
    """Whether an error refuses a plain number, or is one of NumPy about traced objects."""
    if isinstance(error, TextIndexError):
        return False
    texts = any(text in str(error) for text in (*_OBJECT_LOOPS, *STORES))
    return texts or caused_by(error, NumberError) or caused_by(error, StoreError)


def is_conversion(error: BaseException) -> bool:
    """Whether a traced value, or NumPy on an array of them, refused to become plain numbers."""
    if asks_for_numbers(error):
        return True
    if isinstance(error, TraceError):
        return False
    if names_a_traced_value(error):
        return True
    if any(text in str(error) for text in _PLACES) and in_library_of_objects(error):
        return True
    library = library_function(error)
    if library.startswith("numba."):  # whose compiler has no type for it
        return "pyobject" in str(error) or isinstance(error, AttributeError)
    if library.startswith("numpy.random."):  # which would shuffle a copy
        return "read-only" in str(error)
    return library.startswith("scipy.") and not isinstance(error, RuntimeError)


# of a place, in pandas
_PLACES = (
    "has no attribute 'ndim'", "Cannot index by location index", "Invalid value", "Cannot cast array data",
    "has no attribute 'type'", "has no attribute '_sorted_data'", "fill_value must be a scalar",
    "Buffer dtype mismatch",
)  # fmt: skip
_OUR_TYPES = (
    "<traced ", " Scalar ", "'Scalar'", "'Array'", "got Array)", "got Scalar)", "convert Array to", "convert Scalar to",
    "not Scalar", "not Array", "got Scalar", "got Array", "scalar.Scalar'", "array.Array'",
    "numeric or string argument", "Object of type float64 is not JSON",
)  # fmt: skip
_ARGUMENTS = re.compile(r"[(\[, ](Scalar|Array)[)\],]")  # lists of the types of arguments, by SWIG and pybind11


def names_a_traced_value(error: BaseException) -> bool:
    """Whether an error names a traced value: code that takes floats or ordinary arrays only (mpmath, Cython)."""
    is_of_type = isinstance(error, TypeError | AttributeError | NotImplementedError) and "unhashable" not in str(error)
    return is_of_type and (any(text in str(error) for text in _OUR_TYPES) or bool(_ARGUMENTS.search(str(error))))


def caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether an error is of a kind, or was caused by one that is (NumPy wraps them)."""
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, kind):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False
