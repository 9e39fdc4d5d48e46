"""The kernels under mutation are those of the unit tests and of the emulator's fixtures."""

import sys
from pathlib import Path

for folder in ("unit", "emulator", "long_rings", "."):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / folder))
