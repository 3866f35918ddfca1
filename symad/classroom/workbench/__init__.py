"""The workbench: a browser page that types, differentiates, draws, compiles and compares functions."""
