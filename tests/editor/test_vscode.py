"""The product in a real VS Code workbench in headless Chromium, from opening a kernel to the row in the memory."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from workbench import NODE, VSIX, Workbench  # noqa: E402

#: On a busy machine a step may take longer than a person would wait for it.
PATIENT = {"accelopt.limits.seconds": 300}

#: A kernel that adds zero three times, which no rule knows of.
DOUBLE = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows, columns = nl.arange(128)[:, None], nl.arange(8192)[None, :]
    tile = nl.load(x[rows, columns])
    once = nl.add(tile, tile)
    first = nl.add(once, 0.0)
    twice = nl.add(first, 0.0)
    result = nl.add(twice, 0.0)
    nl.store(out[rows, columns], value=result)
    return out


def get_inputs():
    return [np.random.default_rng(np.random.randint(1 << 31)).standard_normal((128, 8192), dtype=np.float32)]


def reference(x):
    return x + x
"""

pytestmark = pytest.mark.editor

OUT = Path(__file__).parent / "out"
BROKEN = "import neuronxcc.nki as nki\n\n\n@nki.jit\ndef kernel(x:\n    return x\n"


@pytest.fixture(scope="module", autouse=True)
def packed_extension():
    """What is tested is what stands in the sources."""
    sources = [*(ROOT / "vscode-extension/src").iterdir(), ROOT / "vscode-extension/package.json"]
    newest = max(file.stat().st_mtime for file in sources)
    assert VSIX.is_file(), "run `make vsix`"
    assert VSIX.stat().st_mtime >= newest, "the extension was edited since it was packed: run `make vsix`"


def test_save_profile_optimize_accept(tmp_path):
    workspace = tmp_path / "work"
    shutil.copytree(ROOT / "examples", workspace)
    (workspace / "broken.py").write_text(BROKEN)
    database = tmp_path / "memory.db"
    OUT.mkdir(exist_ok=True)
    workbench = Workbench(
        tmp_path / "data", workspace, machine=PATIENT,
        environment={"ACCELOPT_DB": str(database)},
    )  # fmt: skip
    workbench.install_extension()
    before = (workspace / "nki_silu.py").read_text()
    workbench.start()
    try:
        state = drive(workbench.url, "drive.mjs")
    finally:
        workbench.stop()
    assert "est." in state["lens"]
    assert "trn1" in state["lens"]
    assert " checked: " in state["offer"]
    assert "tried" in state["progress"]
    assert len(state["versions"]) >= 2  # how many depends on which candidate is judged first
    assert f"silu: {len(state['versions'])} suggestions" in state["announced"]
    assert "silu: " in state["title"]
    assert "The gate accepted it" in state["explanation"]
    assert "executed" in state["explanation"]
    after = (workspace / "nki_silu.py").read_text()
    assert after != before, "the accepted version is not on disk"
    assert "not now" in state["rejection"]
    assert "| `" in state["alike"] or "accepted" in state["alike"]
    assert "There is none" in state["searched"]
    stats = memory_stats(database)
    assert (stats["pairs"], stats["rejected"]) == (1, 1)
    assert state["outside"] == [], "the workbench asked for something outside this machine"


def test_review_a_version_until_it_is_outdated_accept_and_undo(tmp_path):
    workspace, database = tmp_path / "work", tmp_path / "memory.db"
    workspace.mkdir()
    shutil.copy(ROOT / "examples/nki_silu.py", workspace)
    OUT.mkdir(exist_ok=True)
    before = (workspace / "nki_silu.py").read_text()
    workbench = Workbench(
        tmp_path / "data", workspace, machine=PATIENT, environment={"ACCELOPT_DB": str(database)}
    )  # fmt: skip
    workbench.install_extension()
    workbench.start()
    try:
        state = drive(workbench.url, "review.mjs")
    finally:
        workbench.stop()
    for part in ("Accept", "Reject", "Explain", " → ", "on trn1", "agree with the reference"):
        assert part in state["review"], part
    assert len(state["listed"]) >= 1
    assert "Accept" not in state["outdated"].replace("cannot be accepted", "")
    assert "before this edit" not in state["accepted"]
    assert "slower" not in state["undone"]
    assert (workspace / "nki_silu.py").read_text() == before
    assert memory_stats(database)["pairs"] == 0


def test_pictures_are_linked_to_the_source_both_ways(tmp_path):
    workspace = tmp_path / "work"
    workspace.mkdir()
    shutil.copy(ROOT / "examples/nki_silu.py", workspace)
    OUT.mkdir(exist_ok=True)
    workbench = Workbench(
        tmp_path / "data", workspace, machine=PATIENT, environment={"ACCELOPT_DB": str(tmp_path / "memory.db")}
    )  # fmt: skip
    workbench.install_extension()
    workbench.start()
    try:
        state = drive(workbench.url, "pictures.mjs")
    finally:
        workbench.stop()
    assert state["titles"] == [
        "Against the roofline", "Cost by line", "How busy each engine is", "What each engine does in the middle",
    ]  # fmt: skip
    assert "est." in state["note"]
    assert "on trn1" in state["note"]
    assert state["image"][0] == round(state["image"][2]), "the hover shows the roofline in its size"
    assert [target for target in ("trn1", "trn2", "trn3") if any(target in row for row in state["costs"])] == [
        "trn1", "trn2", "trn3",
    ]  # fmt: skip
    assert any("Profile This File Again" in row for row in state["costs"])
    lit = state["lit"]
    assert [bar == lit[4] for bar in lit] == [False, False, False, False, True, False], (
        "the bar of line 22 alone"
    )
    assert len(state["labels"]) == 4
    assert state["history"] == 2
    assert state["errors"] == [], "the page's policy was broken"
    assert state["outside"] == []


def test_nothing_of_an_untrusted_workspace_is_run(tmp_path):
    workspace, ran = tmp_path / "work", tmp_path / "ran"
    workspace.mkdir()
    shutil.copy(ROOT / "examples/nki_silu.py", workspace)
    for module in (
        "selectors",
        "pickle",
        "random",
        "accelopt_lsp",
    ):  # what Python would find in its current folder
        (workspace / f"{module}.py").write_text(f"open({str(ran)!r}, 'a').write({module!r})\n")
    workbench = Workbench(
        tmp_path / "data", workspace, trust_everything=False,
        environment={"ACCELOPT_DB": str(tmp_path / "memory.db")},
    )  # fmt: skip
    workbench.install_extension()
    workbench.start()
    try:
        state = drive(workbench.url, "restricted.mjs")
    finally:
        workbench.stop()
    assert "not trusted" in state["lens"]
    assert state["afterSave"] == state["lens"]
    assert "est." in state["trusted"]
    assert not ran.exists(), ran.read_text()


def test_a_model_that_the_editor_lends(tmp_path):
    """Another extension's language model: chosen, agreed to, then asked; what it wrote is checked, offered, explained.
    (For this one VS Code asks nothing of its own.)"""
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "double.py").write_text(DOUBLE)
    consents = tmp_path / "consents.json"
    settings = {"accelopt.search.candidates": 20, **PATIENT}
    workbench = Workbench(
        tmp_path / "data", workspace, machine=settings,
        environment={"ACCELOPT_DB": str(tmp_path / "memory.db"), "ACCELOPT_CONSENTS": str(consents)},
    )  # fmt: skip
    workbench.install_extension()
    workbench.install_extension(packed(Path(__file__).parent / "vscode/lender", tmp_path / "lender.vsix"))
    workbench.start()
    try:
        state = drive(workbench.url, "lent.mjs")
    finally:
        workbench.stop()
    assert "the whole file" in state["question"]
    assert "model call" in state["end"]
    assert any("written by the model toy/tidy" in version for version in state["versions"]), state["versions"]
    assert "the models of the editor" in consents.read_text()
    assert "It issues fewer instructions." in state["explanation"]
    assert "1 model call" in state["explanation"]
    assert "tried" in state["interrupted"]
    assert state["searches"].count("double on trn1") == 2, (
        "the run that was interrupted, and the one that went on"
    )
    assert "-    result = nl.add(twice, 0.0)" in state["explanation"]


def test_a_persons_change_is_remembered_and_forgotten(tmp_path):
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "double.py").write_text(DOUBLE)
    shutil.copy(ROOT / "examples/nki_silu.py", workspace)
    database = tmp_path / "memory.db"
    settings = {"accelopt.search.candidates": 4, **PATIENT}
    workbench = Workbench(
        tmp_path / "data", workspace, machine=settings,
        environment={"ACCELOPT_DB": str(database)},
    )  # fmt: skip
    workbench.install_extension()
    workbench.start()
    try:
        state = drive(workbench.url, "memory.mjs")
    finally:
        workbench.stop()
    assert "faster than last save" in state["faster"]
    assert "A change to double by a person" in state["page"]
    assert "-    first = nl.add(once, 0.0)" in state["page"]
    assert state["forgotten"].startswith("Forgot the pair")
    assert "2 checked: " in state["again"], "an accepted version that was undone is offered again"
    assert memory_stats(database)["pairs"] == 0


def test_from_a_machine_without_the_server_to_an_accepted_version(tmp_path):
    """Nothing is installed, nothing has torch; the first message is closed. The menu mends each state in turn."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    for name in ("triton_softmax.py", "triton_softmax_problem.py"):
        shutil.copy(ROOT / "examples" / name, workspace)
    workbench = Workbench(
        tmp_path / "data",
        workspace,
        machine={"accelopt.interpreter": "", "accelopt.search.candidates": 4, **PATIENT},
        environment=without_server(tmp_path),
    )
    workbench.install_extension()
    workbench.start()
    try:
        state = drive(workbench.url, "first_run.mjs", 560)
    finally:
        workbench.stop()
    assert "0.4 GB to fetch" in state["offer"]
    assert state["stopped"] == [
        "Install with torch and Triton",
        "Install the Server Only",
        "Choose a Python...",
    ]
    assert state["errors"] == 0
    assert "Install torch and Triton" in state["lacking"][0]
    assert "est." in state["lens"]
    assert any("torch" in line for line in state["doctor"])
    assert state["ticked"] == ["A Python with the server", "The server runs", "See what a kernel costs"]
    assert memory_stats(tmp_path / "memory.db")["pairs"] == 1


#: The kernel that is opened, the example of the guide without one, and the button that installs.
FIRST_RUNS = {"": "Install the Server Only"}
if "ACCELOPT_FETCH_TORCH" in os.environ:  # 0.4 GB to fetch, 1.7 GB on disk
    FIRST_RUNS["triton_softmax.py"] = "With torch"


@pytest.mark.parametrize(("kernel", "button"), FIRST_RUNS.items())
def test_five_clicks_lead_from_a_machine_without_the_server_to_an_accepted_version(tmp_path, kernel, button):
    """With torch it is followed to the first number of a Triton kernel."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    for name in (kernel, kernel.replace(".py", "_problem.py")) if kernel else ():
        shutil.copy(ROOT / "examples" / name, workspace)
    workbench = Workbench(
        tmp_path / "data", workspace, environment=without_server(tmp_path),
        machine={"accelopt.interpreter": "", "accelopt.search.candidates": 4, **PATIENT},
    )  # fmt: skip
    workbench.install_extension()
    workbench.start()
    try:
        state = drive(workbench.url, "first_clicks.mjs", 900, KERNEL=kernel, INSTALL=button)
    finally:
        workbench.stop()
    assert "est." in state["lens"]
    assert len(state["clicks"]) <= 5, state["clicks"]
    assert state["pressed"] == {"mouse": len(state["clicks"]) + state["repeated"], "keys": 0}
    assert kernel or memory_stats(tmp_path / "memory.db")["pairs"] == 1


def without_server(folder: Path) -> dict[str, str]:
    """Return the environment of a machine that has Python alone, with its data below ``folder``."""
    (folder / "home").mkdir()
    (folder / "bin").mkdir()
    (folder / "bin/python3").symlink_to(sys._base_executable)
    return {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin", "ACCELOPT_DB": str(folder / "memory.db"),
        "XDG_DATA_HOME": str(folder / "home"), "VIRTUAL_ENV": "", "CONDA_PREFIX": "",
    }  # fmt: skip


def packed(extension: Path, vsix: Path) -> Path:
    """A VSIX of plain files."""
    with zipfile.ZipFile(vsix, "w") as archive:
        for file in extension.iterdir():
            archive.write(file, f"extension/{file.name}")
    return vsix


def drive(url: str, steps: str, seconds: float = 400, **environment: str) -> dict[str, object]:
    environment = {**os.environ, "PLAYWRIGHT": str(ROOT / ".tools/playwright"), **environment}
    command = [str(NODE), str(Path(__file__).parent / "vscode" / steps), url, str(OUT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
    print(done.stderr)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\nscreenshots: {OUT}"
    return json.loads(done.stdout)


def memory_stats(database: Path) -> dict[str, int]:
    command = [sys.executable, "-m", "accelopt_lsp", "memory", "stats", "--json"]
    environment = {**os.environ, "ACCELOPT_DB": str(database)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=60)
    return json.loads(done.stdout)
