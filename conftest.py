"""Every test and doctest, and every process that one starts, is strict (see `codegen.ir.strictness`)."""

import os

os.environ.setdefault("SYMAD_STRICT", "1")
