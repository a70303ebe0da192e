"""All that has a version has the same."""

from __future__ import annotations

import runpy

from support.installation import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts/versions.py"))


def test_package_extension_and_changelog_state_one_version() -> None:
    assert len(set(SCRIPT["versions"]().values())) == 1, SCRIPT["versions"]()


def test_another_version_and_a_changelog_without_a_date_are_refused(capsys) -> None:
    assert SCRIPT["main"](["9.9.9"]) == 1
    said = capsys.readouterr().out
    assert "package.json: 0" in said
    assert "9.9.9 has no date" in said
