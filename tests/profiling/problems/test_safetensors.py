"""Inputs that a workload takes from a safetensors file: found below the data set, carried with the job, read there."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from support.problem_files import DEFINITION, found_in, loaded

from accelopt_profiling.problems.layouts.flashinfer import stored_inputs
from accelopt_profiling.problems.loading.flashinfer import SafetensorsError, stored_tensor
from accelopt_profiling.problems.problem import ProblemError

torch = pytest.importorskip("torch")


def safetensors(**tensors: tuple[str, list[int], bytes]) -> bytes:
    header, held = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(held), len(held) + len(data)]}
        held += data
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + held


FILE = safetensors(
    ids=("I32", [2], b"\x01\x00\x00\x00\x02\x00\x00\x00"),
    none=("F32", [0, 3], b""),
    half=("BF16", [1], b"\x80\x3f"),
)
TEXT = base64.b64encode(FILE).decode()


def test_tensors_are_read_by_their_name() -> None:
    assert stored_tensor(TEXT, "ids").tolist() == [1, 2]
    assert tuple(stored_tensor(TEXT, "none").shape) == (0, 3)
    assert stored_tensor(TEXT, "half").dtype == torch.bfloat16


@pytest.mark.parametrize("text", ["", "!", TEXT[:40], base64.b64encode(FILE[:-4]).decode()])
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(SafetensorsError, match="half"):
        stored_tensor(text, "half")
    with pytest.raises(SafetensorsError, match="absent"):
        stored_tensor(TEXT, "absent")


def line(path: str) -> str:
    stored = {"type": "safetensors", "path": path, "tensor_key": "x"}
    return json.dumps({"axes": {"m": 2}, "inputs": {"x": stored}, "uuid": "a"})


def test_files_are_found_below_the_data_set_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "set" / "workloads" / "norm"
    folder.mkdir(parents=True)
    (tmp_path / "set" / "blob").mkdir()
    (tmp_path / "set" / "blob" / "x.safetensors").write_bytes(FILE)
    (tmp_path / "set" / "blob" / "pointer.safetensors").write_bytes(
        b"version https://git-lfs.github.com/spec/v1\n"
    )
    workloads = folder / "w.jsonl"
    names = ["blob/x.safetensors", "blob/pointer.safetensors", "../../../../../etc/hostname", "absent"]
    files = stored_inputs(workloads, "\n".join(map(line, names)))
    assert list(files) == ["blob/x.safetensors"]
    assert base64.b64decode(files["blob/x.safetensors"][1]) == FILE


@pytest.mark.parametrize(("rows", "message"), [(2, ""), (3, "not bfloat16")])
def test_a_workload_gets_the_stored_values(rows: int, message: str, tmp_path: Path) -> None:
    held = safetensors(x=("BF16", [2, 96], b"\x80\x3f" * 192))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x.safetensors").write_bytes(held)
    workload = line("x.safetensors").replace('"m": 2', f'"m": {rows}')
    files = {"k.json": json.dumps(DEFINITION), "k.jsonl": workload}
    lookup = found_in(
        tmp_path / "d", files, "import triton\n@triton.jit\ndef k(x): pass\ndef run(x, w, eps): k[(1,)](x)\n"
    )
    assert lookup.ref is not None
    assert lookup.ref.options["stored"] == {"x.safetensors": "x.safetensors"}
    sources = {**lookup.files, "k.py": ""}
    problem = loaded(tmp_path / "job", sources, "flashinfer", "k.json", **lookup.ref.options)
    if message:
        with pytest.raises(ProblemError, match=message):
            problem.inputs(0)
    else:
        assert problem.inputs(0)[0].float().tolist() == [[1.0] * 96] * 2
