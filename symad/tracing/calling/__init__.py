"""Calling: how a user's function is called, with what names, and where in the user's file."""
