"""Whatever is wrong with a file, it gets one clear diagnostic, nothing is lost, and the next save works.

Through the real server and worker; one server lives through all of it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.waiting import until

from accelopt_lsp.demo.editor import Editor, timed_title

pytestmark = pytest.mark.slow

PATIENCE = 90.0
SETTINGS = "[limits]\nseconds = 3\n"
GOOD = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.multiply(tile, 2.0))
    return out


def get_inputs():
    return [np.random.rand(128, 512).astype(np.float32)]


def reference(x):
    return 2 * x
"""
LOAD = "    tile = nl.load(x)\n"
DRAW = "    return [np.random"
FORKS = """    import os, time
    for _ in range(4000):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
"""


def instead(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def in_kernel(statements: str) -> str:
    return instead(LOAD, LOAD + statements)


#: The text, what its first diagnostic's code must be, and words that its message must hold.
CASES = {
    "does not parse": (instead("double(x):", "double(x:"), "syntax-error", "never closed"),
    "nested too deeply": (GOOD + f"\nx = {'(' * 3000}1{')' * 3000}\n", "syntax-error", "parentheses"),
    "no problem": (GOOD[: GOOD.index("def get_inputs")], "inferred-problem", "were inferred"),
    "the problem raises": (instead(DRAW, f"    raise ValueError('no data')\n{DRAW}"), "problem-raised", "no data"),
    "the reference raises": (instead("return 2 * x", "return x + missing"), "problem-raised", "`reference`"),
    "the problem returns nothing": (instead("    return 2 * x", "    pass"), "problem-empty", "`reference`"),
    "a package is missing": (f"import not_there\n{GOOD}", "missing-package", "'not_there'"),
    "the problem never ends": (instead(DRAW, f"    while True: pass\n{DRAW}"), "timeout", "3 s"),
    "the kernel never ends": (in_kernel("    while True: pass\n"), "timeout", "3 s"),
    "segfaults": (in_kernel("    import ctypes; ctypes.string_at(0)\n"), "kernel-crashed", "SIGSEGV"),
    "exits": (in_kernel("    import os; os._exit(3)\n"), "kernel-exited", "3"),
    "raises SystemExit": (in_kernel("    raise SystemExit(0)\n"), "kernel-exited", "0"),
    "forks": (in_kernel(FORKS), ("timeout", "kernel-raised", "kernel-crashed", "out-of-memory"), ""),
    "prints a gigabyte": (
        in_kernel("    for _ in range(1 << 14): print('x' * (1 << 16))\n"), "too-much-output", "1 MiB",
    ),
    "two kernels of one name": (f"{GOOD}\n\n@nki.jit\ndef double(y):\n    return y\n", "duplicate-kernel", "double"),
    "a wrong result": (instead("multiply(tile, 2.0)", "multiply(tile, 3.0)"), "wrong-result", "0.5"),
}  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "accelopt.toml").write_text(SETTINGS)
    editor = Editor(folder, folder / "memory.db")
    await editor.start()
    yield editor
    await asyncio.wait_for(editor.stop(), PATIENCE)


def codes(editor: Editor, uri: str) -> list[str]:
    return [str(d.code) for d in editor.diagnostics.get(uri, [])]


async def numbers(editor: Editor, uri: str) -> list[str]:
    def settled(titles: list[str]) -> bool:
        title = timed_title(titles)
        return title.startswith("est.") and not title.endswith(("...", "checked"))

    return await editor.until("numbers", settled, uri, PATIENCE)


async def good_again(editor: Editor, uri: str) -> None:
    editor.edit(uri, GOOD)
    editor.save(uri)
    await numbers(editor, uri)
    await until(lambda: codes(editor, uri) == [], lambda: codes(editor, uri), PATIENCE)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", CASES)
async def test_one_clear_diagnostic_and_the_next_save_works(session: Editor, case: str) -> None:
    text, expected, words = CASES[case]
    path = session.folder / f"{case.replace(' ', '_')}.py"
    path.write_text(text)
    uri = session.open(path)
    session.save(uri)
    any_of = (expected,) if isinstance(expected, str) else expected
    await until(
        lambda: set(codes(session, uri)) & set(any_of) != set(),
        lambda: session.diagnostics.get(uri),
        PATIENCE,
    )
    matches = [d for d in session.diagnostics[uri] if d.code in any_of]
    assert len(matches) == 1
    assert words in matches[0].message
    assert "Traceback" not in matches[0].message
    await good_again(session, uri)


@pytest.mark.asyncio(loop_scope="module")
async def test_twenty_thousand_lines(session: Editor) -> None:
    rest = "\n".join(f"def f{i}(a):\n    b = a + {i}\n    return b * a\n\n" for i in range(4000))
    path = session.folder / "long.py"
    path.write_text(GOOD + rest)
    uri = session.open(path)
    session.save(uri)
    assert timed_title(await numbers(session, uri)).startswith("est.")
    assert codes(session, uri) == []


@pytest.mark.asyncio(loop_scope="module")
async def test_windows_line_ends(session: Editor) -> None:
    path = session.folder / "crlf.py"
    path.write_bytes(GOOD.replace("\n", "\r\n").encode())
    uri = session.open(path)
    session.edit(uri, GOOD.replace("\n", "\r\n").replace("2 * x", "x + x"))
    session.save(uri)
    await numbers(session, uri)


@pytest.mark.asyncio(loop_scope="module")
async def test_bytes_that_are_not_text(session: Editor) -> None:
    path = session.folder / "latin.py"
    path.write_text(GOOD)
    uri = session.open(path)
    await numbers(session, uri)
    path.write_bytes(GOOD.encode() + b"# caf\xe9\n")
    session.edit(uri, GOOD + "# caf\ufffd\n")
    session.saved(uri)
    await until(lambda: codes(session, uri) == ["not-text"], lambda: codes(session, uri), PATIENCE)
    await good_again(session, uri)


@pytest.mark.asyncio(loop_scope="module")
async def test_deleted_while_it_is_profiled(session: Editor) -> None:
    path = session.folder / "gone.py"
    path.write_text(in_kernel("    import time; time.sleep(1)\n"))
    uri = session.open(path)
    session.save(uri)
    await session.until("a profile", lambda titles: any("profiling" in t for t in titles), uri, PATIENCE)
    path.unlink()
    await good_again(session, uri)


@pytest.mark.parametrize("trouble", ["corrupt", "locked", "nowhere"])
async def test_a_memory_that_cannot_be_used_is_said_once_and_profiles_go_on(
    tmp_path: Path, trouble: str
) -> None:
    database = tmp_path / "memory.db"
    holder = None
    if trouble == "corrupt":
        database.write_bytes(b"this is no database" * 1000)
    elif trouble == "locked":
        holder = sqlite3.connect(database, isolation_level=None)
        holder.execute("create table t (a)")
        holder.execute("begin exclusive")
    else:
        database = Path("/proc/nowhere/memory.db")
    (tmp_path / "accelopt.toml").write_text(SETTINGS)
    path = tmp_path / "kernel.py"
    path.write_text(GOOD)
    editor = Editor(tmp_path, database)
    await editor.start()
    try:
        uri = editor.open(path)
        editor.save(uri)
        await numbers(editor, uri)
        editor.edit(uri, GOOD.replace("2 * x", "x + x"))
        editor.save(uri)
        await numbers(editor, uri)
        await until(lambda: bool(editor.messages), lambda: "no message", PATIENCE)
        about = [m for m in editor.messages if str(database) in m]
        assert len(about) == 1, editor.messages
    finally:
        await asyncio.wait_for(editor.stop(), PATIENCE)
        if holder is not None:
            holder.close()
