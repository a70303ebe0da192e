"""One save examines a file once: its text is parsed once and its problem looked up once, in all processes together."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.editor import Editor

EXAMPLES = Path(__file__).parents[2] / "examples"

#: Imported by every Python process that sees it: writes down what each process of the product parses. The program on
#: the host, which runs kernels, starts without it.
COUNTER = """
import ast, json, os, sys
parse = ast.parse
def counted(source, *arguments, **named):
    text = source if isinstance(source, str) else bytes(source).decode()
    with open(os.environ["COUNTED"], "a") as log:
        log.write(json.dumps([os.getpid(), text]) + "\\n")
    return parse(source, *arguments, **named)
if "accelopt_lsp" in " ".join(sys.orig_argv) or "accelopt-lsp" in " ".join(sys.orig_argv):
    ast.parse = counted
"""

PROBLEM = """
import numpy as np


def get_inputs():
    return [np.zeros((128, 512), np.float32)]


def reference(x):
    return 2 * x
"""

KERNEL = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x) * 2.0)
    return out
"""


@pytest.mark.slow
async def test_a_save_parses_its_text_and_its_problem_once(
    environment: dict[str, str], tmp_path: Path
) -> None:
    counter, log, folder = tmp_path / "counter", tmp_path / "parsed", tmp_path / "work"
    for made in (counter, folder):
        made.mkdir()
    (counter / "sitecustomize.py").write_text(COUNTER)
    (folder / "double_problem.py").write_text(PROBLEM)
    paths = [str(counter), *filter(None, [environment.get("PYTHONPATH")])]
    client = Editor()
    await client.start_io(
        str(Path(sys.executable).with_name("accelopt-lsp")),
        env={**environment, "PYTHONPATH": ":".join(paths), "COUNTED": str(log)},
    )
    await client.begin("vscode", folder)
    uri = client.open(folder / "double.py", KERNEL)
    await client.title(uri, "us on trn1")
    saved = KERNEL.replace("* 2.0", "* 1.0 * 2.0")
    client.replace(uri, "* 2.0", "* 1.0 * 2.0")
    log.write_text("")
    client.save(uri)
    await client.title(uri, "last save")

    async def at_rest() -> bool:
        return not any("profiling" in title for title in await client.titles(uri))

    await client.until(at_rest, "the end of the profile")
    await client.end()
    parsed = Counter(text for _, text in map(json.loads, log.read_text().splitlines()))
    assert (parsed[saved], parsed[PROBLEM]) == (1, 1)
