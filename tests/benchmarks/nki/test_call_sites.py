"""Counting the ``nki.isa`` calls of a library by syntax."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_benchmarks.nki.call_sites import count, main


def test_call_sites_of_a_library_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(
        "import nki.isa as nisa\nfrom nki.isa import dma_copy as copy\nimport other as x\n"
        "nisa.activation(1)\nnisa.not_emulated()\ncopy()\nx.activation()\nnisa.activation\n"
    )
    (tmp_path / "b.py").write_text("from nki import isa\nisa.memset(1, 2)\n")
    (tmp_path / "c.py").write_text("def (\n")
    found = count(tmp_path)
    assert dict(found.functions) == {"activation": 1, "not_emulated": 1, "dma_copy": 1, "memset": 1}
    assert (found.covered(), found.total, found.missing()) == (3, 4, [("not_emulated", 1)])
    assert main([str(tmp_path)]) == 0
    assert "3 of 4 call sites in 2 files are emulated: 75.0%" in capsys.readouterr().out
    assert main([]) == 2
