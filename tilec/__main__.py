"""`python -m tilec`: the `tilec` command, for where the script is not on the path."""

import sys

from tilec.cli import main

sys.exit(main())
