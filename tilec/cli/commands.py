"""The subcommands of `tilec`, a module each."""

from __future__ import annotations

from tilec.records import dataclass


@dataclass(frozen=True)
class Command:
    """A subcommand: `module` has `add_arguments(parser)` and `run(arguments) -> exit code`.

    `isolated`: runs in a child process. `warm`: a function ("module:name") called before the module
    is imported, to load in the fastest way what it will need.
    """

    module: str
    summary: str
    isolated: bool = False
    warm: str = ""


COMMANDS = {
    "compile": Command(
        "tilec.cli.compile",
        "compile a .tile file or a Python kernel",
        isolated=True,
        warm="tilec.compile.compiler_start:start_compiler",
    ),
    "opt": Command(
        "tilec.cli.opt",
        "run named passes on a .tile file of any level",
        isolated=True,
        warm="tilec.compile.compiler_start:load_mlir",
    ),
    "run": Command("tilec.cli.run", "run a Python file's kernels on a GPU or the emulator"),
    "check": Command("tilec.cli.check", "look for races in the PTX of any compiler"),
    "tune": Command("tilec.cli.tune", "choose a tuned kernel's configuration ahead of time"),
    "refit": Command(
        "tilec.cli.refit", "time products on this GPU, and fit what predictions go by"
    ),
    "cache": Command("tilec.cli.cache", "show, empty or carry along what is kept on disk"),
    "completion": Command("tilec.cli.completion", "print what completes this command in a shell"),
    "doctor": Command(
        "tilec.cli.doctor", "show versions, devices and targets, and what is missing"
    ),
}
