"""Files that repeat the tables of settings and actions are as ``scripts/generated.py`` writes them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "scripts" / "generated.py"
PACKAGE = ROOT / "accelopt_lsp" / "accelopt_lsp"


def test_what_is_made_from_the_tables_is_up_to_date() -> None:
    outdated = runpy.run_path(str(GENERATED))["outdated"]()
    assert outdated == [], "run `python scripts/generated.py`"


def test_an_action_has_a_name_of_its_own() -> None:
    """Two parts of the server that take one name would answer each other's callers."""
    names = [row["name"] for row in json.loads((PACKAGE / "actions.json").read_text("utf-8"))["actions"]]
    assert sorted(set(names)) == sorted(names)
