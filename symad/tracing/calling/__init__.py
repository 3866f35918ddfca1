"""Call a user's function: with which names, and where in the user's file."""
