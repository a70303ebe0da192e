"""Files of cases: a base, and what changes in each."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_benchmarks.edit_cases import edited, read_edit_cases

BASE = "one = 1\n\ntwo = 2\n\nthree = 3\n"


def test_a_case_has_fields_and_versions(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(
        f"{BASE}=== other\nabout: a: b\n--- same\n--- whole\nx\n--- longer\n@@\n two = 2\n+++ 2\n"
    )
    base, other = read_edit_cases(file)
    assert (base.name, base.lead, base.parts) == ("", BASE, {})
    assert other.fields() == {"about": "a: b"}
    texts = [other.version(part, base.lead) for part in ("same", "whole", "longer")]
    assert texts == [BASE, "x\n", BASE.replace("two = 2\n", "two = 2\n++ 2\n")]
    with pytest.raises(ValueError, match="other has no part"):
        other.version("none", base.lead)


def test_edits_are_of_the_base_not_of_one_another() -> None:
    part = "@@\n-three = 3\n+one = 1\n@@\n-one = 1\n+three = 3\n@@\n two = 2\n\n+four = 4\n"
    assert edited(BASE, part) == "three = 3\n\ntwo = 2\n\nfour = 4\none = 1\n"


@pytest.mark.parametrize(("old", "times"), [("four", 0), ("", 2), ("one = 1\n-two = 2", 0)])
def test_what_is_edited_has_to_be_there_once(old: str, times: int) -> None:
    with pytest.raises(ValueError, match=f"there {times} times"):
        edited(BASE, f"@@\n-{old}\n+x\n")
