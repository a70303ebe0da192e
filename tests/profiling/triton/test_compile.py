"""The compiler's facts for every architecture, against independent readings of the same output."""

import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.compile_launches import CapturedLaunch, line_of, matmul, softmax, wrong_types

from accelopt_profiling.quantity import Known
from accelopt_profiling.targets import GpuTarget, load_gpu
from accelopt_profiling.triton.compilation.compile import (
    _triton_compile,
    cache_folder,
    compile_launch,
    own_cache,
)
from accelopt_profiling.triton.compilation.compiled import CompileProblem
from accelopt_profiling.triton.hints import with_code
from accelopt_profiling.triton_adapter.compiler import ptxas

pytestmark = pytest.mark.triton

NVIDIA = ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"]
AMD = ["gfx942", "gfx950"]
MATRIX_OPCODES = {
    "mma": r"\bmma\.sync\.", "wgmma": r"\bwgmma\.mma_async\.", "tcgen05": r"\btcgen05\.mma\.", "mfma": r"\bv_mfma_"
}  # fmt: skip
MATRIX_UNITS = {"sm_80": "mma", "sm_89": "mma", "sm_90": "wgmma", "sm_100": "tcgen05", "sm_120": "mma",
                "gfx942": "mfma", "gfx950": "mfma"}  # fmt: skip


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("triton-cache")


def assembly(launch: CapturedLaunch, target: GpuTarget, cache: Path) -> dict[str, str | bytes]:
    kernel, _ = _triton_compile(launch, target, launch.options, cache)
    return dict(kernel.asm)


def ptxas_verbose(ptx: str, architecture: str) -> dict[str, int]:
    """Registers, stack and spill bytes from ptxas itself: another program than the one the facts come from."""
    arch = int(architecture.removeprefix("sm_"))
    suffix = "a" if arch >= 90 else ""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        command = [
            ptxas(arch)[0],
            "-v",
            "--regAllocOptLevel=2",
            "-lineinfo",
            f"--gpu-name={architecture}{suffix}",
        ]
        done = subprocess.run(
            [*command, file.name, "-o", "/dev/null"], capture_output=True, text=True, check=True
        )
    stack_line = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", done.stderr)
    registers = re.search(r"Used (\d+) registers", done.stderr)
    assert stack_line
    assert registers
    return {"registers": int(registers[1]), "stack": int(stack_line[1]), "spill_stores": int(stack_line[2])}


@pytest.mark.parametrize("name", NVIDIA)
@pytest.mark.parametrize("kernel", [softmax, matmul])
def test_registers_and_stack_agree_with_ptxas(
    name: str, kernel: Callable[[], CapturedLaunch], cache: Path
) -> None:
    target, launch = load_gpu(name), kernel()
    facts = compile_launch(launch, target, cache)
    verbose = ptxas_verbose(str(assembly(launch, target, cache)["ptx"]), target.architecture)
    assert facts.problem is None
    assert (facts.registers, facts.stack_bytes) == (verbose["registers"], verbose["stack"])
    assert (facts.spill_bytes == 0) == (verbose["spill_stores"] == 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", AMD)
@pytest.mark.parametrize("kernel", [softmax, matmul])
def test_amd_registers_and_occupancy_agree_with_comments(
    name: str, kernel: Callable[[], CapturedLaunch], cache: Path
) -> None:
    target, launch = load_gpu(name), kernel()
    facts = compile_launch(launch, target, cache)
    text = str(assembly(launch, target, cache)["amdgcn"])
    vgprs = re.search(r"; TotalNumVgprs: (\d+)", text)
    by_registers = re.search(r"; Occupancy: (\d+)", text)  # waves on one SIMD, shared memory left out
    assert vgprs
    assert by_registers
    assert facts.registers == int(vgprs[1])
    assert facts.occupancy is not None
    if facts.occupancy.limit in ("registers", "warps"):
        assert facts.occupancy.warps == pytest.approx(4 * int(by_registers[1]), abs=facts.warps)


@pytest.mark.parametrize("name", NVIDIA + AMD)
def test_matmul_instructions_agree_with_a_plain_count(name: str, cache: Path) -> None:
    target = load_gpu(name)
    facts = compile_launch(matmul(), target, cache)
    asm = assembly(matmul(), target, cache)
    text = str(asm["ptx" if target.backend == "cuda" else "amdgcn"])
    unit = MATRIX_UNITS[name]
    assert facts.matrix_unit == unit
    assert facts.instructions["tensor"] == len(re.findall(MATRIX_OPCODES[unit], text)) > 0
    copies = len(re.findall(r"\bcp\.async\.c[ag]\.|\bglobal_load_lds_|\bbuffer_load_.* lds$", text, re.M))
    assert facts.instructions.get("async_copy", 0) == copies
    assert copies > 0 or target.backend == "hip"
    stores = len(re.findall(r"\bst\.global\.|\b(?:global|buffer)_store_", text))
    assert facts.instructions["global_store"] == stores


@pytest.mark.parametrize("name", NVIDIA + AMD)
def test_the_loop_is_found_on_its_line_with_the_tensor_instructions_in_it(name: str, cache: Path) -> None:
    facts = compile_launch(matmul(), load_gpu(name), cache)
    loop = max(facts.loops, key=lambda loop: loop.counts.get("tensor", 0))
    assert loop.line == line_of("the loop")
    assert 0 < loop.counts["tensor"] <= facts.instructions["tensor"]
    assert facts.pipeline_depth >= 2


@pytest.mark.parametrize("name", NVIDIA + AMD)
def test_memory_and_special_functions_are_on_their_lines(name: str, cache: Path) -> None:
    facts = compile_launch(softmax(), load_gpu(name), cache)
    assert facts.lines[line_of("the load")]["global_load"] == facts.instructions["global_load"]
    assert facts.lines[line_of("the store")]["global_store"] == facts.instructions["global_store"]
    per_thread = 1024 // (4 * load_gpu(name).warp_size)
    assert facts.lines[line_of("the special function")]["special"] >= per_thread
    assert facts.access_bytes == {line_of("the load"): 16, line_of("the store"): 16}
    layouts = {access.line: access.warp_run_bytes for access in facts.accesses}
    lanes = load_gpu(name).warp_size
    assert layouts == {line_of("the load"): 16 * lanes, line_of("the store"): 16 * lanes}


@pytest.mark.slow
def test_stages_show_as_pipeline_depth(cache: Path) -> None:
    depths = [
        compile_launch(matmul(k=32, num_stages=s), load_gpu("h100"), cache).pipeline_depth for s in (1, 2, 4)
    ]
    assert depths == [1, 2, 4]


def test_every_number_is_known_as_compiled(cache: Path) -> None:
    quantities = compile_launch(matmul(), load_gpu("b200"), cache).quantities()
    assert {"registers", "shared_memory", "occupancy", "tensor_memory", "tensor_instructions"} <= set(
        quantities
    )
    assert {quantity.known for quantity in quantities.values()} == {Known.COMPILED}


def test_lines_say_what_the_compiler_made_of_them(cache: Path) -> None:
    lines = {line.line: line for line in with_code([], compile_launch(matmul(), load_gpu("h100"), cache))}
    loop = lines[line_of("the loop")]
    assert "4 wgmma, 8 async copies" in loop.text
    assert loop.text.endswith("3-stage pipelined")
    assert lines[line_of("the left load")].text == "12x16 B async copies"
    assert {q.known for line in lines.values() for q in line.quantities.values()} == {Known.COMPILED}
    assert 0 not in lines


def test_a_kernel_that_does_not_compile_has_nothing_to_say_on_its_lines(cache: Path) -> None:
    assert with_code([], compile_launch(wrong_types(), load_gpu("h100"), cache)) == []


@pytest.mark.slow
def test_too_much_shared_memory_is_a_fact_not_an_error(cache: Path) -> None:
    facts = compile_launch(matmul(256, 128, 128, num_stages=3), load_gpu("h100"), cache)
    assert facts.problem is not None
    assert facts.problem.kind == "out-of-resources"
    assert str(facts.shared_bytes) in facts.problem.message
    assert "232448" in facts.problem.message
    assert compile_launch(matmul(), load_gpu("h100"), cache).problem is None


def test_too_many_threads_is_a_fact(cache: Path) -> None:
    facts = compile_launch(softmax(8192, num_warps=32), load_gpu("mi300x"), cache)
    assert facts.problem is not None
    assert facts.problem.kind == "out-of-resources"


def test_a_type_error_names_its_line(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    facts = compile_launch(wrong_types(), load_gpu("h100"), cache)
    assert facts.problem is not None
    assert facts.problem.kind == "compile-error"
    assert facts.problem.line == line_of("not two matrices")
    assert facts.registers is None
    assert capfd.readouterr().out == ""


def test_options_of_another_vendor_do_not_get_in_the_way(cache: Path) -> None:
    captured = {"num_warps": 4, "num_stages": 3, "arch": "sm90", "backend_name": "cuda", "warp_size": 32,
                "extern_libs": (("libdevice", "/nowhere.bc"),), "supported_fp8_dtypes": ("fp8e5",)}  # fmt: skip
    facts = compile_launch(softmax(**captured), load_gpu("gfx942"), cache)
    assert facts.problem is None
    assert facts.architecture == "gfx942"


KERNEL = """import triton
import triton.language as tl

@triton.jit
def copy(out, inp, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(inp + at))
"""


def test_a_block_too_wide_for_its_threads_is_not_compiled(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    fn = runpy.run_path(str(path))["copy"]
    signature = {"out": "*fp32", "inp": "*fp32", "B": "constexpr"}

    def compiled(size: int, warps: int, target: str = "h100") -> CompileProblem | None:
        launch = CapturedLaunch(
            fn, "copy", str(path), 5, (1, 1, 1), (), signature, {"B": size}, {"num_warps": warps}
        )
        return compile_launch(launch, load_gpu(target), cache).problem

    started = time.process_time()
    problem = compiled(1 << 20, 4)
    assert problem is not None
    assert (problem.kind, "8,192 a thread" in problem.message) == ("too-wide", True)
    assert (amd := compiled(1 << 20, 4, "gfx942")) is not None
    assert "4,096 a thread" in amd.message
    assert time.process_time() - started < 10
    assert compiled(1 << 13, 4) is None


CHILD = """
import json, sys, runpy
from pathlib import Path
from accelopt_profiling.targets import load_gpu
from accelopt_profiling.triton.compilation.compile import compile_with_machine_code
from accelopt_profiling.triton.launch import CapturedLaunch

fn = runpy.run_path(sys.argv[1])["copy"]
signature = {"out": "*fp32", "inp": "*fp32", "B": "constexpr"}
launch = CapturedLaunch(fn, "copy", sys.argv[1], 5, (1, 1, 1), (), signature, {"B": 128}, {"num_warps": 1})
facts = compile_with_machine_code(launch, load_gpu("h100"), Path(sys.argv[2]))
print(json.dumps([facts.cache_hit, sorted(facts.access_bytes)]))
"""


@pytest.mark.slow
def test_a_cached_binary_keeps_the_right_lines(tmp_path: Path) -> None:
    """The trap: Triton's key has no path, so a.py's binary would be served for the same kernel in b.py."""
    runs = []
    for folder, name in (("one", "a.py"), ("two", "b.py"), ("three", "a.py")):
        path = tmp_path / folder / name
        path.parent.mkdir()
        path.write_text(KERNEL, encoding="utf-8")
        command = [sys.executable, "-c", CHILD, str(path), str(tmp_path / "cache")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        runs.append(json.loads(done.stdout))
    assert runs == [[False, [7]], [False, [7]], [True, [7]]]


def test_the_cache_folder_is_restored_and_blocks_nest(tmp_path: Path) -> None:
    before = os.environ.get("TRITON_CACHE_DIR")
    with own_cache("/x/a.py", tmp_path) as outer, own_cache("/y/a.py") as inner:
        assert outer == inner == cache_folder("/z/a.py", tmp_path)
        assert os.environ["TRITON_CACHE_DIR"] == str(inner)
    assert os.environ.get("TRITON_CACHE_DIR") == before
