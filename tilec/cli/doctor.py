"""Shows versions, targets and devices, what is missing, and how to get it.

The exit code is 1 where something that tilec needs is wrong; optional parts may be missing.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from tilec.doctor import findings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilec doctor`."""
    parser.add_argument("--json", action="store_true", help="print a list of findings as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Runs `tilec doctor`; the exit code."""
    found = list(findings())
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in found], indent=1))
    else:
        for finding in found:
            print(f"{finding.state:8}{finding.subject:16}{finding.text}")
            if finding.remedy:
                print(f"{'':24}-> {finding.remedy}")
    return int(any(finding.state == "wrong" for finding in found))
