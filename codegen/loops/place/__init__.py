"""Give rows and loops places in buffers: a rolled program."""
