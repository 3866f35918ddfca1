"""Side-by-side measurements of symad and its peers; `python -m benchmarks.hessian` runs them."""
