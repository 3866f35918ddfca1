"""Regions: one body many times, over tables of places; the form in which code does not grow with its data."""
