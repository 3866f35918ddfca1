"""Makes the points of each head importable, which the tests of codegen keep."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "codegen"))
