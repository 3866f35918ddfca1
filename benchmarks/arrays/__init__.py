"""Array programs as people write them in NumPy: value and gradient by symad, JAX and autograd, beside NumPy's own f."""
