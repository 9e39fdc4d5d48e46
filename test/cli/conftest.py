"""The fixtures of other compilers' PTX live beside the emulator's tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "emulator"))
