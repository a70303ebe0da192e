"""The worker's first message: devices through the vendors' tools, for which scripts stand in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.worker import handshake
from accelopt_profiling.worker.handshake import (
    PROTOCOL,
    gpus,
    hello,
    neuron_cores,
    parse_neuron,
    parse_nvidia,
    parse_rocm,
)
from accelopt_profiling.worker.isolation import Isolation

NVIDIA = (
    "0, NVIDIA H100 80GB HBM3, GPU-1, 550.54.15, 81559, 81000, 9.0\n"
    "1, NVIDIA H100 80GB HBM3, GPU-2, 550.54.15, 81559, 12, 9.0"
)
ROCM = {
    "card0": {
        "Card Series": "AMD Instinct MI300X",
        "VRAM Total Memory (B)": str(192 << 30),
        "VRAM Total Used Memory (B)": str(2 << 30),
    },
    "system": {"Driver version": "6.8.5"},
}
NEURON = [{"neuron_device": 0, "nc_count": 8}, {"neuron_device": 1, "nc_count": 8}]


@pytest.fixture
def tools(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    def program(name: str, says: str, status: int = 0) -> None:
        (tmp_path / f"{name}.txt").write_text(says)
        (tmp_path / name).write_text(f"#!/bin/sh\n/bin/cat {tmp_path}/{name}.txt\nexit {status}\n")
        (tmp_path / name).chmod(0o755)

    return program


def test_a_machine_without_devices(tools):
    facts = hello(Isolation())
    assert (facts["devices"], facts["resources"], facts["protocol"]) == ([], {}, PROTOCOL)
    assert facts["memory_bytes"] >= facts["memory_free_bytes"] > 0
    json.dumps(facts, allow_nan=False)


def test_nvidia(tools):
    tools("nvidia-smi", NVIDIA)
    first, second = gpus()
    assert (first["name"], first["driver_version"], first["compute_cap"]) == (
        "NVIDIA H100 80GB HBM3",
        "550.54.15",
        "9.0",
    )
    assert (second["uuid"], second["memory.free"]) == ("GPU-2", "12")


@pytest.mark.parametrize("there", [False, True])
def test_cudas_device_file_is_made_ahead_of_steps_that_cannot(tools, tmp_path, monkeypatch, there):
    file = tmp_path / "nvidia-uvm"
    monkeypatch.setattr(handshake, "UNIFIED_MEMORY", file)
    tools("nvidia-smi", NVIDIA)
    (tmp_path / "nvidia-modprobe").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    (tmp_path / "nvidia-modprobe").chmod(0o755)
    if there:
        file.touch()
    assert len(gpus()) == 2
    log = tmp_path / "asked"
    assert (log.read_text() if log.exists() else "") == ("" if there else "-u -c=0\n")


def test_amd(tools):
    tools("rocm-smi", json.dumps(ROCM))
    (card,) = gpus()
    assert (card["name"], card["driver_version"]) == ("AMD Instinct MI300X", "6.8.5")
    assert (card["memory.total"], card["memory.free"]) == (str(192 << 10), str(190 << 10))


def test_neuron(tools):
    tools("neuron-ls", json.dumps(NEURON))
    assert neuron_cores() == 16
    assert hello(Isolation())["resources"]["neuron_cores"] == 16


@pytest.mark.parametrize("name", ["nvidia-smi", "rocm-smi", "neuron-ls"])
def test_a_tool_that_fails_lists_nothing(tools, name):
    tools(name, "Failed to initialize NVML: Driver/library version mismatch", 18)
    assert gpus() == []
    assert neuron_cores() == 0


@given(
    st.text()
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda v: st.lists(v) | st.dictionaries(st.sampled_from(["card0", "system", "nc_count"]), v),
        max_leaves=8,
    ).map(json.dumps)
)
def test_whatever_a_tool_says_is_survived(text):
    for parse in (parse_nvidia, parse_rocm, parse_neuron):
        parse(text)
