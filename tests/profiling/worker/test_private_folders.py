"""A step reads the project's folders whoever may read them, and names the one that its user may not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.worker_jobs import answer, local_host

from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import JobFailedError
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import Job, Step

_KERNEL = "# accelopt: problem=../../two/p.py\nimport nki\n@nki.jit\ndef k(x): return x\n"
_FILES = {
    "a/one/k.py": _KERNEL, "two/p.py": "def get_inputs(): pass\ndef reference(): pass\n",
    "lib/__init__.py": "", "lib/sizes.py": "N = 3\n", "single.py": "N = 4\n",
}  # fmt: skip


async def _names(folder: Path, text: str, private: str) -> list[str]:
    for name, content in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    folder.chmod(0o755)
    kernel = folder / "a/one/k.py"
    kernel.write_text(_KERNEL)
    source = job_files(examine(kernel, _KERNEL, project_root=folder), ship_imports=False, text=text)
    for place in private.split():
        (folder / place).chmod(0o700 if (folder / place).is_dir() else 0o600)
    async with local_host() as host:
        return (await answer(host, Job(source, [Step("load", "numpy")])))["names"]


@pytest.mark.slow
@pytest.mark.parametrize("private", ["a/one", "two", "a", "a/one two", ".", "a a/one two .", "lib"])
async def test_a_kernel_in_a_private_folder_is_run(tmp_path: Path, private: str) -> None:
    assert await _names(tmp_path, "x = 1", private) == ["x"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("private", "text", "code", "message"),
    [
        ("lib", "from lib.sizes import N", "no-access", "{}/lib may not be read by the user that kernels run as"),
        ("lib/sizes.py", "from lib.sizes import N", "user-error", "Permission denied: '{}/lib/sizes.py'"),
        ("single.py", "from single import N", "user-error", "Permission denied: '{}/single.py'"),
    ],
)  # fmt: skip
async def test_what_a_step_may_not_read_is_named(
    tmp_path: Path, private: str, text: str, code: str, message: str
) -> None:
    if os.getuid() != 0:
        pytest.fail("only as root steps run as another user: run the tests as root", pytrace=False)
    with pytest.raises(JobFailedError) as failed:
        await _names(tmp_path, text, private)
    assert (failed.value.error.code, failed.value.error.file, failed.value.error.line) == (
        code,
        "a/one/k.py",
        1,
    )
    assert message.format(tmp_path) in failed.value.error.message
