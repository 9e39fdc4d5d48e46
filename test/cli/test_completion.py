"""`tilec completion`: bash completes by it; zsh and fish get the same commands and options."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilec.cli.command import main
from tilec.cli.commands import COMMANDS
from tilec.cli.completion import SHELLS, whole_parser
from tilec.messages.diagnostics import CompileError

pytest.importorskip("shtab")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_there(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in script] == []
    assert "num-warps" in script
    assert "sm_103a" in script


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["t"], {"tune"}),
        (["tune", "--a"], {"--arg", "--again"}),
        (["compile", "--target", "sm_1"], {"sm_100a", "sm_103a", "sm_120a", "sm_121a"}),
        (["cache", ""], {"list", "clear", "export", "import"}),
        (["check", "ker"], {"kernel.ptx"}),
        (["refit", "--out", ""], {"folder"}),
    ],
)
def test_bash_completes(
    words: list[str], expected: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    main(["completion", "bash"])
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "folder").mkdir()
    (tmp_path / "kernel.ptx").touch()
    line = " ".join(f"'{word}'" for word in ("tilec", *words))
    before = ["tilec", *words][-2]
    program = f"""
    source ./script
    COMP_WORDS=({line}); COMP_CWORD={len(words)}
    function=$(complete -p tilec | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    $function tilec '{words[-1]}' '{before}'
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run([bash, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert set(done.stdout.split()) == expected, done.stderr


def test_without_the_compiler_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tilec.cli.compile", None)
    with pytest.raises(CompileError, match="every command, and compile needs"):
        whole_parser()
