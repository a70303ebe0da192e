"""The sets of files that ``accelopt bench rewrite`` searches, and what it tells of a search without a suggestion."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from accelopt_benchmarks.foreign.rewrites import RewriteOutcome, rewrite_files, rows, why_none
from accelopt_benchmarks.foreign.triton_bench import FILES

OUTCOME = RewriteOutcome("a.py", "planted", None, 50.0, None, "", "", "", 3, 9.0, "")


def test_every_sixth_file_is_held_out(tmp_path: Path) -> None:
    folder = tmp_path / FILES
    folder.mkdir(parents=True)
    for number in range(13):
        (folder / f"{number:02}.py").write_text("")
    groups = {group: rewrite_files([group], [tmp_path]) for group in ("tritonbench", "tritonbench-held-out")}
    assert [f.path.stem for f in groups["tritonbench-held-out"]] == ["00", "06", "12"]
    assert len(groups["tritonbench"]) == 10


def test_the_corpus_has_both_sets() -> None:
    assert {f.set for f in rewrite_files(["naive", "planted"], [])} == {"naive", "planted"}


def test_only_files_with_a_number_count() -> None:
    mended = replace(OUTCOME, finding="slow-type", speedup=1.2)
    pointed, good = rows([OUTCOME, mended, replace(OUTCOME, us=None)])
    assert (pointed.value, pointed.unit, pointed.met) == (1, "of 3", False)
    assert (good.value, good.unit, good.met) == (1, "of 2", False)


def test_why_nothing_is_offered() -> None:
    tried = "   1 unclear          rule:a: A. (5 us)\n   2 faster, unchecked rule:b: B. (4 us)\n"
    refused = "     refused by the gate: It writes 3.\n"
    end = "2 candidates tried; nothing faster found"
    assert why_none(tried + refused + end) == "1 refused by the gate: It writes 3."
    assert why_none(tried + end) == f"estimated: 1 faster, 1 unclear; {end}"
    assert why_none("no rule applies") == "no rule applies"
