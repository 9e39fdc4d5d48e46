"""lit's configuration: `lit test` from the repository's root. See README.md."""

import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
for _directory in (_HERE, _HERE.parent):
    if str(_directory) not in sys.path:
        sys.path.insert(0, str(_directory))

import lit_format  # noqa: E402 - found through the path above

config.name = "tilec"  # noqa: F821 - lit defines `config`
config.test_format = lit_format.ForkedTest()  # noqa: F821
config.suffixes = [".mlir", ".tile", ".ttir", ".py"]  # noqa: F821
config.excludes = ["lit.cfg.py", "lit_format.py", "programs"]  # noqa: F821
config.test_source_root = str(_HERE)  # noqa: F821
config.test_exec_root = str(_HERE.parent / "build" / "lit")  # noqa: F821
config.recursiveExpansionLimit = 3  # noqa: F821
config.environment["PATH"] = os.environ["PATH"]  # noqa: F821

_opt = "tilec opt --split-input-file"
config.substitutions += [  # noqa: F821
    ("%roundtrip", f"{_opt} %s | {_opt} - | filecheck %s"),
    ("%python", sys.executable),
]
