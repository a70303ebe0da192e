"""Answer for the emulated GPU where a package asks the program ``nvidia-smi`` which GPU there is."""

from __future__ import annotations

import functools
import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accelopt_profiling.targets import GpuTarget

#: Lists the GPU (``-L``), or prints the asked fields, and a line with its name for everything else. A field that the
#: target's data do not give is ``[N/A]``, as the program itself prints it.
_PROGRAM = """#!/bin/sh
fields=
for argument in "$@"; do
    case $argument in
    --query-gpu=*) fields=${{argument#*=}} ;;
    -L | --list-gpus) echo "GPU 0: "{name}; exit ;;
    esac
done
[ -n "$fields" ] || {{ echo "GPU 0: "{name}" (emulated)"; exit; }}
case "$*" in *noheader*) ;; *) echo "$fields" ;; esac
case "$*" in *nounits*) mib= mhz= ;; *) mib=' MiB' mhz=' MHz' ;; esac
line= IFS=,
for field in $fields; do
    case $field in
    name | gpu_name) value={name} ;;
    compute_cap) value={capability} ;;
    memory.total) value={memory}$mib ;;
    clocks.max.sm | clocks.max.graphics | clocks.sm | clocks.gr) value={clock}$mhz ;;
    index | gpu_index) value=0 ;;
    count) value=1 ;;
    *) value='[N/A]' ;;
    esac
    line=${{line:+$line, }}$value
done
echo "$line"
"""


def program(target: GpuTarget) -> str:
    """Return the text of a shell script that answers as ``nvidia-smi`` would for ``target``."""
    arch = int(target.arch)
    return _PROGRAM.format(
        name=shlex.quote(target.title),
        capability=f"{arch // 10}.{arch % 10}",
        memory=int(target.get("dram_bytes", 80e9)) >> 20,
        clock=round(float(target.get("clock_hz", 1.7e9)) / 1e6),
    )


@contextmanager
def nvidia_smi(target: GpuTarget) -> Iterator[None]:
    """Put the program first on this process's ``PATH`` until the block ends.

    Nothing for another maker's GPU.
    """
    if target.backend != "cuda":
        yield
        return
    before, text = os.environ.get("PATH", os.defpath), program(target)
    file = Path(_folder(text).name, "nvidia-smi")
    if not file.exists():
        file.parent.mkdir(exist_ok=True)  # a step may have emptied its temporary folder
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
    os.environ["PATH"] = os.pathsep.join([str(file.parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


@functools.cache
def _folder(text: str) -> tempfile.TemporaryDirectory[str]:
    """Return the folder of the program ``text``, one for all emulations of this process: a check has fifty."""
    return tempfile.TemporaryDirectory(prefix="accelopt-bin-")
