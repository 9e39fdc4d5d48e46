"""NumPy multiplies matrices in one thread in every test: this module is imported before NumPy.

Products here are small. With a thread per core OpenBLAS gains no time on them, and its threads spin
between two products: 7 % of the CPU time of the longest test files on 2 cores, more on more.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
