"""The server in Neovim's own client, with our plugin and without, and in Emacs' eglot, headless."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
SERVER = json.dumps([sys.executable, "-m", "accelopt_lsp", "lsp"])
STATS = [sys.executable, "-m", "accelopt_lsp", "memory", "stats", "--json"]
BROKEN = "import neuronxcc.nki as nki\n\n\n@nki.jit\ndef kernel(x:\n    return x\n"

pytestmark = pytest.mark.editor


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(ROOT / "examples/nki_silu.py", folder)
    (folder / "broken.py").write_text(BROKEN)
    return folder


def drive(command: list[str], work: Path) -> dict[str, object]:
    environment = {
        **os.environ, "WORK": str(work), "SERVER": SERVER, "STATS": json.dumps(STATS), "HOME": str(work.parent),
        "ACCELOPT_DB": str(work.parent / "memory.db"), "XDG_STATE_HOME": str(work.parent / "state"),
        "PLUGIN": str(ROOT / "editors/neovim"),
    }  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=420, env=environment, cwd=work)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


def pairs(work: Path) -> int:
    environment = {**os.environ, "ACCELOPT_DB": str(work.parent / "memory.db")}
    done = subprocess.run(STATS, capture_output=True, text=True, env=environment, check=True, timeout=60)
    return int(json.loads(done.stdout)["pairs"])


def test_neovim(work):
    before = (work / "nki_silu.py").read_text()
    nvim = Path(sys.executable).parent / "nvim"
    state = drive(
        [str(nvim), "--headless", "-u", "NONE", "-i", "NONE", "-l", str(HERE / "neovim/drive.lua")], work
    )
    assert state["diagnostic"] == "syntax-error"
    assert "est." in state["lens"]
    assert "trn1" in state["lens"]
    assert state["hover"]
    assert state["hints"] > 0
    assert (work / "nki_silu.py").read_text() != before
    assert pairs(work) == 1


def test_neovim_with_its_plugin(work):
    nvim = Path(sys.executable).parent / "nvim"
    script = str(HERE / "neovim/plugin.lua")
    state = drive([str(nvim), "--headless", "-u", "NONE", "-i", "NONE", "-l", script], work)
    assert "silu: " in state["winbar"]
    assert "ga accept" in state["winbar"]
    assert state["diff"]
    assert state["windows"] == 1
    assert state["undone"]


@pytest.mark.parametrize("page", ["neovim", "emacs"])
def test_each_editor_takes_the_configurations_of_its_page(tmp_path, page):
    text = (ROOT / f"docs/how-to/{page}.md").read_text("utf-8").replace("~/accelopt-lsp", str(ROOT))
    blocks = re.findall(r"^```(?:lua|elisp)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    nvim = [str(Path(sys.executable).parent / "nvim"), "--headless", "-u", "NONE", "-i", "NONE", "-l"]
    command = {"neovim": nvim, "emacs": ["emacs", "--batch", "-l"]}[page]
    for number, block in enumerate(blocks):
        script = tmp_path / f"{number}.{'lua' if page == 'neovim' else 'el'}"
        script.write_text(block)
        done = subprocess.run(
            [*command, str(script)], capture_output=True, text=True, timeout=60, cwd=tmp_path
        )
        said = [line for line in done.stderr.splitlines() if not line.startswith("Loading ")]
        assert (done.returncode, said) == (0, []), block


def test_emacs(work):
    before = (work / "nki_silu.py").read_text()
    state = drive(["emacs", "--batch", "-l", str(HERE / "emacs/drive.el")], work)
    assert "parse" in state["diagnostic"]
    assert (work / "nki_silu.py").read_text() != before
    assert pairs(work) == 1
