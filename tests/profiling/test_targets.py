"""Targets: found by every spelling, complete, a source beside each number, also from inside an archive."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import accelopt_profiling
from accelopt_profiling.targets import GpuTarget, UnknownTargetError, load_gpu, load_target, target_names

NEEDED = {
    "multiprocessors", "clock", "dram_bandwidth", "dram_bytes", "l2_bytes", "l2_bandwidth",
    "registers_per_multiprocessor", "max_registers_per_thread", "register_allocation",
    "max_warps_per_multiprocessor", "max_programs_per_multiprocessor", "shared_memory_per_multiprocessor",
    "shared_memory_per_program", "shared_memory_reserved_per_program", "shared_memory_allocation",
    "multiprocessor_l2_bytes_per_clock", "special_per_clock", "integer_per_clock", "peak.fp32", "peak.fp16",
    "peak.bf16",
    "model.dram_efficiency", "model.tensor_efficiency", "model.fp32_efficiency", "model.launch_floor",
    "model.l2_share", "peak.fp64", "l1_bytes", "l1_bytes_per_clock", "l2_merged_requests", "atomic_updates_per_clock",
    "model.l2_latency", "model.load_latency", "model.program_start", "model.product_overhead",
}  # fmt: skip


@pytest.mark.parametrize("name", target_names())
def test_every_figure_has_a_unit_or_is_a_share_and_names_its_source(name: str) -> None:
    target = load_target(name)
    for key, figure in target.figures.items():
        assert figure.source.strip(), f"{name}: {key} has no source"
        assert figure.unit or key.startswith("model."), f"{name}: {key} has no unit"


@pytest.mark.parametrize("name", target_names("gpu"))
def test_a_gpu_has_all_figures_the_estimate_needs_in_a_sane_order(name: str) -> None:
    gpu = load_gpu(name)
    assert set(gpu.figures) >= NEEDED
    assert gpu["l2_bandwidth"] > gpu["dram_bandwidth"]
    assert gpu["peak.fp16"] >= gpu["peak.fp32"]
    assert gpu["shared_memory_per_program"] <= gpu["shared_memory_per_multiprocessor"]
    # The datasheet's fp32 peak is lanes x 2 x clock, with 64..256 lanes in a multiprocessor.
    assert 60 <= gpu["peak.fp32"] / (2 * gpu["clock"] * gpu["multiprocessors"]) <= 260


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("h100", "h100"), ("H100", "h100"), ("sm_90", "h100"), ("cuda:90", "h100"), ("h100-pcie", "h100_pcie"),
     ("sm_80", "a100"), ("sm_89", "rtx4090"), ("sm_100", "b200"), ("sm_120", "rtx5090"), ("gfx942", "mi300x"),
     ("hip:gfx950", "mi355x")],
)  # fmt: skip
def test_a_target_is_found_by_name_alias_and_architecture(spelling: str, name: str) -> None:
    assert load_target(spelling).name == name


def test_no_two_targets_share_a_spelling() -> None:
    spellings = [s for n in target_names() for s in (n, *load_target(n).aliases)]
    assert len(spellings) == len(set(spellings))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownTargetError, match=r"'v100'.*a100.*mi300x"):
        load_target("v100")


@pytest.mark.parametrize("name", target_names("gpu"))
def test_device_properties_multiply_back_to_the_bandwidth(name: str) -> None:
    gpu = load_target(name)
    assert isinstance(gpu, GpuTarget)
    properties = gpu.device_properties()
    bandwidth = 2 * properties["mem_clock_rate"] * 1e3 * properties["mem_bus_width"] / 8
    assert bandwidth == pytest.approx(gpu["dram_bandwidth"], rel=1e-3)


def test_targets_are_read_from_inside_a_zip_archive(tmp_path: Path) -> None:
    package = Path(accelopt_profiling.__file__).parent
    archive = tmp_path / "worker.zip"
    with zipfile.ZipFile(archive, "w") as z:
        for path in [package / "__init__.py", *(package / "targets").iterdir()]:
            if path.is_file():
                z.write(path, Path("accelopt_profiling") / path.relative_to(package))
    code = "from accelopt_profiling.targets import load_target as t; print(t('sm_90').title, t.__module__)"
    command = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.startswith("NVIDIA H100 SXM5")
