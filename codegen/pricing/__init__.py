"""Pricing: what straight lines, sweeps and loops cost, to build and to call, before they are built."""
