"""Structure: loops in a traced function, found or written down, and the rolled program made of them."""
