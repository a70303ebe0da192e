"""Which problem is found for a kernel file, and what is said about one that cannot be used."""

# ruff: noqa: E501 - tables of sources, one case a line

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.problem_files import KERNEL, found_in

import accelopt_profiling
from accelopt_profiling.examination import examine
from accelopt_profiling.job_files import job_files

MODULE = "def get_inputs(): return [1]\ndef reference(x): return x\n"
NKIBENCH = "def get_inputs(): pass\ndef forward(x): pass\ndef transform_to_nki_inputs(i): pass\ndef transform_nki_outputs(k, r): pass\n"
KERNELBENCH = "class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"
DEFINITION = json.dumps(
    {"name": "add", "axes": {}, "inputs": {}, "outputs": {}, "reference": "def run(): pass"}
)
MAIN = "\nif __name__ == '__main__':\n    add(1, 2)\n"

#: name -> (files beside k.py, k.py, the kind that is found, the path it is found at, part of its origin)
FOUND: dict[str, tuple[dict[str, str], str, str, str | None, str]] = {
    "a comment": ({"p.py": MODULE}, "# accelopt: problem=p.py entry=add\n" + KERNEL, "module", "p.py", "line 1"),
    "a quoted comment": ({"a b.py": MODULE}, KERNEL + '# accelopt: problem="a b.py"\n', "module", "a b.py", "comment"),
    "a comment names NKIBench": ({"p.py": NKIBENCH}, "# accelopt: problem=p.py\n" + KERNEL, "nkibench", "p.py", "comment"),
    "a comment names itself": ({}, "# accelopt: problem=k.py\n" + KERNEL + MODULE, "module", None, "comment"),
    "in the file": ({"k_problem.py": "no python"}, KERNEL + MODULE, "module", None, "in the kernel file"),
    "beside it": ({"k_problem.py": MODULE}, KERNEL + MAIN, "module", "k_problem.py", "k_problem.py"),
    "without a reference": ({"k_problem.py": "def get_inputs(): pass"}, KERNEL + MAIN, "module", "k_problem.py", "k_problem.py"),
    "inputs in the file": ({}, KERNEL + "def get_inputs(): pass\n", "module", None, "in the kernel file"),
    "inputs in a file that runs itself": ({}, KERNEL + "def get_inputs(): pass\n" + MAIN, "selfrun", None, "__main__"),
    "NKIBench beside it": ({"k_problem.py": NKIBENCH}, KERNEL, "nkibench", "k_problem.py", "k_problem.py"),
    "NKIBench in the file": ({}, KERNEL + NKIBENCH, "nkibench", None, "kernel file"),
    "KernelBench in the file": ({}, KERNEL + KERNELBENCH + "class ModelNew: pass\n", "kernelbench", None, "kernel file"),
    "KernelBench in a file named alike": ({"k.json": "{}", "model.py": KERNELBENCH}, KERNEL + "class ModelNew: pass\n", "kernelbench", "model.py", "model.py"),
    "FlashInfer-Bench": ({"k.json": DEFINITION, "k.jsonl": "{}"}, KERNEL, "flashinfer", "k.json", "k.json"),
    "runs itself": ({}, KERNEL + MAIN, "selfrun", None, "__main__"),
    "runs at import": ({}, KERNEL + "result = add(1, 2)\n", "selfrun", None, "statements"),
    "has a test": ({}, KERNEL + "def test_add():\n    add(1, 2)\n", "selfrun", None, "test_add"),
    "has a test of a class": ({}, KERNEL + "class A:\n    def f(self): return add(1, 2)\napply = A().f\ndef test_a():\n    apply()\n", "selfrun", None, "test_a"),
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND)
def test_the_first_way_that_matches_wins(case: str, tmp_path: Path) -> None:
    files, kernel, kind, path, origin = FOUND[case]
    lookup = found_in(tmp_path, files, kernel, tmp_path)
    assert lookup.findings == []
    assert lookup.ref is not None
    assert (lookup.ref.kind, lookup.ref.path) == (kind, path)
    assert origin in lookup.ref.origin
    assert len(lookup.ref.content_hash) == 16
    assert set(lookup.files) == {p for p in (path, lookup.ref.options.get("workloads")) if p}


#: name -> (files, k.py, code, line, part of the message)
WRONG: dict[str, tuple[dict[str, str], str, str, int, str]] = {
    "missing": ({}, "\n# accelopt: problem=nowhere.py\n" + KERNEL, "problem-missing", 2, "does not exist"),
    "a folder": ({"d.py/x": ""}, "# accelopt: problem=d.py\n" + KERNEL, "problem-invalid", 1, "is a folder"),
    "a text file": ({"p.txt": MODULE}, "# accelopt: problem=p.txt\n" + KERNEL, "problem-invalid", 1, "neither a Python nor a JSON file"),
    "does not parse": ({"p.py": "x = 1\ndef (:\n"}, "# accelopt: problem=p.py\n" + KERNEL, "problem-invalid", 1, "line 2"),
    "no inputs": ({"p.py": "def reference(x): pass\n"}, "# accelopt: problem=p.py\n" + KERNEL, "problem-invalid", 1, "not `get_inputs`"),
    "neither": ({"p.py": "x = 1\n"}, "# accelopt: problem=p.py\n" + KERNEL, "problem-invalid", 1, "neither `get_inputs` nor `reference`"),
    "half of NKIBench": ({"p.py": "def get_inputs(): pass\ndef forward(x): pass\n"}, "# accelopt: problem=p.py\n" + KERNEL, "problem-invalid", 1, "`transform_to_nki_inputs`"),
    "half of KernelBench": ({"p.py": "class Model: pass\ndef get_inputs(): pass\n"}, "# accelopt: problem=p.py\n" + KERNEL, "problem-invalid", 1, "`get_init_inputs`"),
    "its own problem, which it is not": ({}, "# accelopt: problem=k.py\n" + KERNEL, "problem-invalid", 1, "named as its own problem"),
    "JSON that is none": ({"p.json": "{"}, "# accelopt: problem=p.json\n" + KERNEL, "problem-invalid", 1, "not valid JSON"),
    "JSON of something else": ({"p.json": "[]"}, "# accelopt: problem=p.json\n" + KERNEL, "problem-invalid", 1, "not a JSON object"),
    "a definition without axes": ({"p.json": '{"name": 1}'}, "# accelopt: problem=p.json\n" + KERNEL, "problem-invalid", 1, '"axes"'),
    "a definition without workloads": ({"p.json": DEFINITION}, "# accelopt: problem=p.json\n" + KERNEL, "problem-missing", 1, "has no workloads"),
    "outside the project": ({}, "# accelopt: problem=../p.py\n" + KERNEL, "problem-invalid", 1, "outside the project"),
    "beside it, and broken": ({"k_problem.py": "def get_inputs(: pass"}, KERNEL + MAIN, "problem-invalid", 5, "does not parse"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_each_fault_is_one_finding(case: str, tmp_path: Path) -> None:
    files, kernel, code, line, words = WRONG[case]
    project = tmp_path / "project"
    (tmp_path / "p.py").write_text(MODULE)
    lookup = found_in(project, files, kernel, project)
    assert lookup.ref is None
    assert [(f.code, f.line, f.severity) for f in lookup.findings] == [(code, line, "error")]
    assert words in lookup.findings[0].message
    assert code in json.loads((Path(accelopt_profiling.__file__).parent / "findings.json").read_text())


def test_a_problem_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "k_problem.py").write_bytes(b"x = '\xff\xfe'\n")
    lookup = found_in(tmp_path, {}, KERNEL)
    assert [f.code for f in lookup.findings] == ["not-text"]


def test_a_problem_that_leads_nowhere_or_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "k_problem.py").symlink_to(tmp_path / "gone.py")
    assert [f.code for f in found_in(tmp_path, {}, KERNEL).findings] == ["problem-missing"]
    (tmp_path / "k_problem.py").unlink()
    os.mkfifo(tmp_path / "k_problem.py")
    assert [f.code for f in found_in(tmp_path, {}, KERNEL).findings] == ["problem-invalid"]


def test_no_problem_is_said_once_with_a_way_out(tmp_path: Path) -> None:
    lookup = found_in(
        tmp_path, {}, KERNEL + "def forward(x): pass\n"
    )  # any library's, not a part of NKIBench's
    assert lookup.ref is None
    assert [(f.code, f.severity, f.line) for f in lookup.findings] == [("no-problem", "information", 5)]
    assert found_in(tmp_path, {}, "x = 1\n").findings == []


def test_half_a_problem_in_the_kernel_file_is_a_warning(tmp_path: Path) -> None:
    lookup = found_in(tmp_path, {}, KERNEL + "def reference(x): pass\n")
    assert [f.code for f in lookup.findings] == ["problem-invalid", "no-problem"]
    assert lookup.findings[0].line == KERNEL.count("\n") + 1


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ("problems/p.py", "problems/p.py"),
        ({"kernels/*.py": "problems/p.py"}, "problems/p.py"),
        ({"k.py": "problems/p.py"}, "problems/p.py"),
        ({"*": "problems/q.py", "kernels/k.py": "problems/p.py"}, "problems/p.py"),
        ({"other.py": "problems/p.py"}, None),
    ],
)
def test_settings_name_problems_relative_to_the_project(
    configured: Mapping[str, str] | str, expected: str | None, tmp_path: Path
) -> None:
    files = {"problems/p.py": MODULE, "problems/q.py": MODULE + "x = 1"}
    lookup = found_in(tmp_path, files, KERNEL, tmp_path, configured, name="kernels/k.py")
    assert (lookup.ref.path if lookup.ref else None) == expected


def test_nkibench_folders(tmp_path: Path) -> None:
    files = {
        "reference/silu_M4_N8_numpy_0.py": NKIBENCH,
        "reference/silu_M4_N8_numpy_1.py": NKIBENCH + "x = 1",
    }
    lookup = found_in(tmp_path, files, KERNEL, None, None, "kernels/silu_M4_N8_0.py")
    assert lookup.ref is not None
    assert lookup.ref.path == "reference/silu_M4_N8_numpy_0.py"
    summary = {"silu": {"cases": {"1": {"impls": [{"task": "./reference/silu_M4_N8_numpy_1.py", "kernel": "./kernels/silu_M4_N8_0.py"}]}}}}  # fmt: skip
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    lookup = found_in(tmp_path, {}, KERNEL, None, None, "kernels/silu_M4_N8_0.py")
    assert lookup.ref is not None
    assert lookup.ref.path == "reference/silu_M4_N8_numpy_1.py"
    source = job_files(examine(tmp_path / "kernels/silu_M4_N8_0.py", KERNEL), ship_imports=True)
    assert set(source.files) == {"kernels/silu_M4_N8_0.py", "reference/silu_M4_N8_numpy_1.py"}


@pytest.mark.parametrize(
    "summary", ["[]", "{}", "null", '{"a": {"cases": {"0": {"impls": [{"task": 1}]}}}}', "{"]
)
def test_a_strange_summary_is_no_problem(summary: str, tmp_path: Path) -> None:
    lookup = found_in(tmp_path, {"summary.json": summary}, KERNEL, None, None, "kernels/a_0.py")
    assert [f.code for f in lookup.findings] == ["no-problem"]


def test_flashinfer_data_set_layout(tmp_path: Path) -> None:
    files = {"definitions/add/add.json": DEFINITION, "workloads/add/add.jsonl": "{}"}
    kernel = "# accelopt: problem=definitions/add/add.json\n" + KERNEL
    lookup = found_in(tmp_path, files, kernel)
    assert lookup.ref is not None
    assert lookup.ref.options["workloads"] == "workloads/add/add.jsonl"


def test_a_job_for_another_machine_brings_what_is_imported(tmp_path: Path) -> None:
    files = {
        "k_problem.py": "import shapes\nfrom pkg.deep import size\n" + MODULE,
        "shapes.py": "import json\nfrom rounding import up\n",
        "src/rounding.py": "import k\n",
        "pkg/__init__.py": "from . import near\n",
        "pkg/near.py": "",
        "pkg/deep.py": "from .near import x\nimport shapes\n",
        "unrelated.py": "",
    }
    found_in(tmp_path, files, KERNEL, tmp_path)
    file = examine(tmp_path / "k.py", KERNEL + "# unsaved\n", project_root=tmp_path)
    source = job_files(file, ship_imports=True)
    assert set(source.files) == {"k.py", *files} - {"unrelated.py"}
    assert source.files["k.py"].endswith("# unsaved\n")
    assert source.import_paths == []
    here = job_files(file, ship_imports=False, text=KERNEL)
    assert set(here.files) == {"k.py", "k_problem.py"}
    assert here.import_paths == [str(tmp_path), str(tmp_path / "src")]
