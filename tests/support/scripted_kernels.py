"""A kernel file for the scripted server, whose kernels cost ``COST`` microseconds, and a search in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.editor import Editor

KERNELS = """\
import neuronxcc.nki as nki


def get_inputs():
    return []


def reference():
    return []


@nki.jit
def silu(x):
    COST = 900
    return x


@nki.jit
def gelu(x):
    COST = 300
    return x
"""


async def optimized(editor: Editor, client: str, path: Path, text: str = KERNELS, **options: Any) -> str:
    """Open a file and search for a faster ``silu``."""
    await editor.begin(client, path.parent, **options)
    uri = editor.open(path, text)
    await editor.title(uri, "est. 300 us")
    answer = await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    assert answer["job"]
    await editor.title(uri, "1 checked: 2.0x est.")
    return uri


def decided(decisions: Path) -> list[str]:
    return (
        [json.loads(line)["what"] for line in decisions.read_text().splitlines()]
        if decisions.exists()
        else []
    )


async def recorded(editor: Editor, decisions: Path) -> list[str]:
    async def look() -> list[str]:
        return decided(decisions)

    return await editor.until(look, "a decision in the memory")
