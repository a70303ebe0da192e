"""The schema, as ordered steps that are never edited once released: each adds something or makes an index anew under
its old name, none removes what was saved.

That is why an older version of the program can go on using a database that a newer one has migrated. Columns that hold
JSON end in ``_json``. Tables with a text id also have an integer key, because the text index refers to rows by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlite_utils import Database, Migrations

migrations = Migrations("accelopt")
_migration: Callable[[Callable[[Database], None]], Callable[[Database], None]] = migrations()


def _keyed(db: Database, name: str, columns: Mapping[str, type]) -> None:
    db.table(name).create(
        {"number": int, "id": str, **columns}, pk="number", not_null={"id"}, if_not_exists=True
    )
    db.table(name).create_index(["id"], unique=True, if_not_exists=True)


@_migration
def m001_pairs(db: Database) -> None:
    columns = {
        "kernel": str, "dialect": str, "target": str, "host": str, "file": str, "origin": str,
        "summary": str, "bound": str, "slow_hash": str, "fast_hash": str, "slow_text": str,
        "fast_text": str, "slow_json": str, "fast_json": str, "steps_json": str,
        "features_json": str, "receipts_json": str, "created": str, "imported": int,
    }  # fmt: skip
    _keyed(db, "pairs", columns)
    db.table("pairs").create_index(["dialect"], if_not_exists=True)


@_migration
def m002_traps(db: Database) -> None:
    columns = {
        "kernel_hash": str, "candidate_id": str, "target": str, "origin": str, "code": str, "message": str,
        "kernel": str, "dialect": str, "steps_json": str, "created": str, "imported": int,
    }  # fmt: skip
    _keyed(db, "traps", columns)
    db.table("traps").create_index(["kernel_hash"], if_not_exists=True)


@_migration
def m003_rejections(db: Database) -> None:
    columns = {
        "kernel_hash": str, "candidate_id": str, "origin": str, "reason": str, "kernel": str,
        "suggestion": str, "created": str, "imported": int,
    }  # fmt: skip
    _keyed(db, "rejections", columns)
    db.table("rejections").create_index(["kernel_hash"], if_not_exists=True)


@_migration
def m004_runs(db: Database) -> None:
    columns = {
        "file": str, "kernel": str, "kernel_hash": str, "target": str, "host": str, "options_json": str,
        "status": str, "started": str, "finished": str, "result_json": str,
    }  # fmt: skip
    _keyed(db, "runs", columns)
    db.table("runs").create_index(["kernel_hash", "status"], if_not_exists=True)


@_migration
def m005_run_events(db: Database) -> None:
    events = db.table("run_events")
    events.create(
        {"run": str, "number": int, "kind": str, "key": str, "data_json": str, "created": str},
        pk=("run", "number"),
        if_not_exists=True,
    )
    events.create_index(["run", "key"], unique=True, if_not_exists=True)  # null keys do not collide


@_migration
def m006_suggestions(db: Database) -> None:
    columns = {"run": str, "file": str, "kernel_hash": str, "state": str, "body_json": str, "created": str}
    _keyed(db, "suggestions", columns)
    db.table("suggestions").create_index(["file", "kernel_hash"], if_not_exists=True)


@_migration
def m007_receipts(db: Database) -> None:
    _keyed(db, "receipts", {"kind": str, "body_json": str, "created": str})


@_migration
def m008_profile_cache(db: Database) -> None:
    cache = db.table("profile_cache")
    cache.create(
        {"key": str, "value_json": str, "bytes": int, "used": float},
        pk="key",
        if_not_exists=True,
    )
    cache.create_index(["used"], if_not_exists=True)


@_migration
def m009_text_search(db: Database) -> None:
    for name, columns in (
        ("pairs", ["kernel", "summary", "origin", "file", "slow_text", "fast_text"]),
        ("traps", ["kernel", "origin", "code", "message"]),
        ("rejections", ["kernel", "origin", "reason"]),
    ):
        if not db.table(name).detect_fts():
            db.table(name).enable_fts(columns, create_triggers=True)


@_migration
def m010_edits(db: Database) -> None:
    pairs = db.table("pairs")
    if "edit" not in pairs.columns_dict:
        pairs.add_column("edit", str, not_null_default="")
    if "example" not in pairs.columns_dict:
        pairs.add_column("example", int, not_null_default=0)


@_migration
def m011_outcomes(db: Database) -> None:
    columns = {
        "item": str, "task": str, "bound": str, "dialect": str, "target": str, "log_ratio": float, "rewrite": str,
        "failed": int, "accepted": int, "edited": int, "undone": int, "created": str,
    }  # fmt: skip
    _keyed(db, "outcomes", columns)
    db.table("outcomes").create_index(["dialect"], if_not_exists=True)
    db.table("outcomes").create_index(["task"], if_not_exists=True)


@_migration
def m012_sketches(db: Database) -> None:
    pairs = db.table("pairs")
    if "sketch" not in pairs.columns_dict:
        pairs.add_column("sketch", bytes)


@_migration
def m013_experience(db: Database) -> None:
    for table, columns in (
        ("pairs", {"fast_bound": None, "moved_json": "[]", "lesson": ""}),
        ("traps", {"summary": ""}),
    ):
        for name, default in columns.items():
            if name not in db.table(table).columns_dict:
                db.table(table).add_column(name, str, not_null_default=default)
    db.table("kernels").create({"hash": str, "dialect": str, "sketch": bytes}, pk="hash", if_not_exists=True)


@_migration
def m014_proved_pairs(db: Database) -> None:
    if "proved" not in db.table("pairs").columns_dict:
        db.table("pairs").add_column("proved", int, not_null_default=0)


@_migration
def m015_packed_pairs(db: Database) -> None:
    pairs = db.table("pairs")
    for name in ("sources", "packed", "names"):
        if name not in pairs.columns_dict:
            pairs.add_column(name, bytes)


@_migration
def m016_words_alone(db: Database) -> None:
    """Make the text indexes anew without the places of the words, a third as large; their triggers stay."""
    for name in ("pairs", "traps", "rejections"):
        index = db.table(f"{name}_fts")
        if "detail=" in index.schema:
            continue
        columns = ", ".join(f'"{column}"' for column in index.columns_dict)
        index.drop()
        db.execute(f"CREATE VIRTUAL TABLE {name}_fts USING fts5({columns}, content='{name}', detail=none)")
        db.execute(f"INSERT INTO {name}_fts({name}_fts) VALUES ('rebuild')")
