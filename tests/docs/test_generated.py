"""Files that repeat the tables of settings and actions are as ``scripts/generated.py`` writes them."""

from __future__ import annotations

import runpy
from pathlib import Path

GENERATED = Path(__file__).parents[2] / "scripts" / "generated.py"


def test_what_is_made_from_the_tables_is_up_to_date() -> None:
    outdated = runpy.run_path(str(GENERATED))["outdated"]()
    assert outdated == [], "run `python scripts/generated.py`"
