"""Passes from rolled program to rolled program."""
