"""`python -m tilec.cli`, for where the `tilec` script is not on the path."""

import sys

from tilec.cli.command import main

sys.exit(main())
