"""The rows of the page that shows what becomes of a kernel's pointers (`tutorials.py`)."""

from __future__ import annotations

from pathlib import Path

from tutorials import row

KERNELS = Path(__file__).parent / "kernels"


def test_a_row_says_what_became_of_pointers(tmp_path: Path) -> None:
    (tmp_path / "03-matmul.ttir").write_text((KERNELS / "matmul.ttir").read_text())
    number, name, arrays, gathers, decided = _cells(row(tmp_path / "03-matmul.ttir", "sm_90a"))
    assert (number, name, gathers) == ("03", "`matmul`", "none")
    assert arrays == "f16 [M, K]; f16 [K, N]; f16 [M, N]"
    assert "asynchronous copy: TMA (2 times)" in decided
    assert "warp specialisation: 1 loading warp" in decided


def test_a_row_says_which_accesses_stay_gathers() -> None:
    *_, gathers, decided = _cells(row(KERNELS / "tokens.ttir", "sm_80"))
    assert gathers[0].isdigit()
    assert "TMA" not in decided


def test_a_row_says_what_is_not_imported(tmp_path: Path) -> None:
    text = (KERNELS / "vector_add.ttir").read_text().replace("arith.addf", "arith.frobnicate")
    (tmp_path / "01.ttir").write_text(text)
    _, _, why, *rest = _cells(row(tmp_path / "01.ttir", "sm_80"))
    assert why.startswith("not imported: ")
    assert "arith.frobnicate" in why
    assert rest == ["", ""]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]
