"""Find: what repeats in straight lines."""
