"""Optimise: passes from rolled program to rolled program, before loops are written."""
