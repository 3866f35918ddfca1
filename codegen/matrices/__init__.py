"""Matrix operations as loops."""
