"""Kernels, and all ways to call one."""
