"""Matrix operations of all kinds and forms, with operands."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from codegen.ir.matrix_operation import MatrixOperation

SIZES = ((1, 1), (2, 3), (5, 1), (7, 9))
TALL = ((1, 1), (3, 1), (5, 3), (6, 6))
PRODUCTS = ((1, 1, 1, 1), (1, 5, 7, 3), (3, 4, 9, 6), (2, 1, 8, 5))

OPERATIONS = [
    *(MatrixOperation("cholesky", (n,)) for n in (1, 2, 5, 12)),
    *(MatrixOperation("determinant", (n,)) for n in (1, 2, 3, 8)),
    *(MatrixOperation("log_determinant", (n,)) for n in (1, 2, 3, 8)),
    *(MatrixOperation("triangular", sizes, (turned, False)) for sizes in SIZES for turned in (False, True)),
    *(MatrixOperation("solve", sizes, (turned, False)) for sizes in SIZES for turned in (False, True)),
    *(MatrixOperation("qr", sizes) for sizes in TALL),
    *(
        MatrixOperation("product", sizes, turned)
        for sizes in PRODUCTS
        for turned in itertools.product((False, True), repeat=2)
    ),
]
OWN = [  # which a kernel carries out itself
    *(MatrixOperation("order", sizes) for sizes in ((1, 1), (1, 7), (3, 4), (1, 60))),
    *(MatrixOperation(kind, sizes) for kind in ("insertion", "insertion_right") for sizes in ((1, 1), (5, 9), (60, 3))),
    *(
        MatrixOperation(kind, sizes)
        for kind in ("gather", "scatter")
        for sizes in ((1, 1, 1), (1, 5, 9), (1, 9, 5), (3, 4, 6))
    ),
]
OPERATIONS += OWN
FACTORS = [  # which have no loops
    *(MatrixOperation("eigen", (n,)) for n in (1, 2, 5)),
    *(MatrixOperation("exponential", (n,)) for n in (1, 2, 3)),
    *(MatrixOperation("singular", sizes) for sizes in (*TALL, (1, 2), (3, 5))),
]


def name_of(operation: MatrixOperation) -> str:
    """Return what a test of an operation is called."""
    sizes = "x".join(map(str, operation.sizes))
    return f"{operation.kind}-{sizes}{''.join('-T' if turned else '' for turned in operation.transposed)}"


def operands_of(operation: MatrixOperation, seed: int = 0) -> list[NDArray[np.float64]]:
    """Return operands: a factorized matrix is positive definite, places are whole, any other is drawn."""
    random = np.random.default_rng(seed)
    made = [random.normal(size=size) for size in operation.operands]
    if operation.kind in ("cholesky", "triangular"):
        n = operation.sizes[0]
        square = made[0].reshape(n, n)
        made[0] = (square @ square.T + n * np.eye(n)).ravel()
    if operation.kind in ("gather", "scatter"):
        n = operation.sizes[1]
        made[1] = random.integers(-n, n, size=made[1].size).astype(np.float64)
    if operation.kind == "order" or operation.kind.startswith("insertion"):
        made = [np.round(keys) for keys in made]  # some are equal
        made[0] = made[0] if operation.kind == "order" else np.sort(made[0])
    return made
