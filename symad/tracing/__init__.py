"""Tracing: traced scalars and arrays that plain NumPy code computes with, and containers of them."""
