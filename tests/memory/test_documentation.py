from __future__ import annotations

import re
from pathlib import Path

from sqlite_utils import Database

from accelopt_memory import profile_cache
from accelopt_memory.features import WEIGHTS
from accelopt_memory.migrations import migrations

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "memory.md").read_text(encoding="utf-8")


def test_the_page_names_every_table() -> None:
    db = Database(memory=True)
    migrations.apply(db)
    tables = {
        name for name in db.table_names() if "_fts" not in name and not name.startswith(("_", "sqlite_"))
    }
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == tables


def test_the_page_has_the_figures_of_the_code() -> None:
    text = " ".join(PAGE.split())
    assert (
        f"at most {profile_cache.TOTAL_BYTES >> 20} MiB in entries of at most {profile_cache.ENTRY_BYTES >> 20} MiB"
        in text
    )
    assert f"{profile_cache.AGE_SECONDS / 86400:.0f} days" in text
    assert "(" + ", ".join(f"{weight:.2f}" for weight in WEIGHTS.values()) in text
