"""An export holds no absolute path and no secret, and code stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from accelopt_memory.export_file import export_memory, import_file
from accelopt_memory.export_masks import masked_text
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair
from accelopt_profiling.receipt import Receipt

TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("text", "masks"),
    [
        ("/home/ada/work/kernel.py", "kernel.py"),
        ('path = "C:\\\\Users\\\\ada\\\\k.py"', 'path = "k.py"'),
        ("~/secret project/k.py and ~ada/x.py", "k.py and x.py"),
        ("file:///srv/a/b.json", "b.json"),
        (f"use {TOKEN}", "use <secret>"),
        ('api_key = "abcdef123456"', 'api_key = "<secret>"'),
        ("HF_TOKEN: abcdefgh12345678", "HF_TOKEN: <secret>"),
        ("postgres://ada:hunter2@db/x", "postgres://<secret>@db/x"),
    ],
)
def test_paths_and_secrets_are_masked(text: str, masks: str) -> None:
    assert masked_text(text) == masks


@pytest.mark.parametrize(
    "text",
    [
        "a / b / c",
        "x[i // 128, j]", "tl.load(p + k / n)", "# see docs/explanation/gate.md", "1/2/3",
        "tokens = n // 4",
        "from a.b import c", "https://example.org/a/b", "key = os.environ['API_KEY']", "token = None", "a/b/c.py",
        "def f(a, /, b): return a/b", "num_tokens=1024", "num_tokens=batch_size * sequence_length",
        "NUM_TOKENS: tl.constexpr = 1024",
    ],
)  # fmt: skip
def test_code_stays_as_it_is(text: str) -> None:
    assert masked_text(text) == text


def test_an_export_is_masked_and_comes_in_again(
    memory: Memory, make_pair: Callable[..., Pair], tmp_path: Path
) -> None:
    receipt = Receipt("gate", {"file": "/home/ada/kernel.py", "environment": {"A": TOKEN}})
    memory.add_receipt(receipt)
    pair = make_pair(receipts=(receipt.id,), file="/home/ada/kernel.py", summary=f"Wider tiles. {TOKEN}")
    memory.add_pair(pair)
    export_memory(memory, tmp_path / "out.jsonl")
    written = (tmp_path / "out.jsonl").read_text()
    assert TOKEN not in written
    assert "/home" not in written
    with Memory.open(tmp_path / "other.db") as other:
        assert import_file(other, tmp_path / "out.jsonl")["pair"] == 1
        (shared,) = other.pairs()
        assert (shared.file, shared.slow_text) == ("kernel.py", pair.slow_text)
        assert other.receipt(shared.receipts[0]) is not None
