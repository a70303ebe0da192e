"""List what of the host's files a step may read: an allow-list, so that nothing private has to be known by name.

A step gets the interpreter and its packages, the system's libraries and programs, device files, and the folders of the
person's project that it imports from. In those, hidden files (``.env``, ``.git``) and files with the names of keys are
left out, wherever they lie.
"""

from __future__ import annotations

import glob
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

#: Programs and libraries of the system; links among them are kept as links.
SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/opt/rocm*",
    "/opt/aws", "/opt/amazon", "/opt/nvidia", "/opt/intel",
)  # fmt: skip
#: What libraries read of ``/etc``. Users are listed in a file of the sandbox's own.
CONFIGURATION = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/etc/timezone",
    "/etc/nsswitch.conf", "/etc/host.conf", "/etc/hosts", "/etc/protocols", "/etc/services", "/etc/mime.types",
    "/etc/OpenCL",
)  # fmt: skip
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
#: GPUs and NeuronCores, where there are any.
ACCELERATORS = (
    "/dev/nvidia*",
    "/dev/nvidia-caps/*",
    "/dev/kfd",
    "/dev/dri/*",
    "/dev/neuron*",
    "/dev/infiniband/*",
)
#: Variables that name folders with libraries or programs for kernels.
_VARIABLES = (
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "ROCM_HOME",
    "ROCM_PATH",
    "NEURON_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
)

#: A project of more entries than this has its folders beyond the first level unseen by the search for hidden files.
_MOST_ENTRIES = 50_000
_PRIVATE = re.compile(
    r"\.(?!git(ignore|keep|attributes|modules)$|clang-|flake8$|isort|pylintrc$|editorconfig$|dockerignore$|pre-commit|style|"
    r"coveragerc$|readthedocs|python-version$)|id_(rsa|dsa|ecdsa|ed25519)\b|.*\.(pem|key|p12|pfx|kdbx|ppk|keystore|jks)$|"
    r".*(credential|secret)s?(\.(?!py)|$)",
    re.IGNORECASE,
)
#: Folders of packages, which hold thousands of files and none of a person's.
_PACKAGES = {"site-packages", "dist-packages", "node_modules", "__pycache__"}


@dataclass(frozen=True)
class ReadablePlaces:
    """``whole`` may be read with all below it. Of ``projects`` everything but what ``private`` names."""

    whole: tuple[str, ...]
    projects: tuple[str, ...] = ()


def places_of_interpreter(environment: Mapping[str, str]) -> ReadablePlaces:
    """Return what each step on this host reads: system, interpreter, packages."""
    extra = [part for name in _VARIABLES for part in environment.get(name, "").split(os.pathsep)]
    extra += [
        value for name, value in environment.items() if name.startswith("TRITON_") and name.endswith("_PATH")
    ]
    prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *extra]
    folders = [*_there(SYSTEM), *CONFIGURATION, *filter(_may_be_shown, prefixes)]
    paths = [str(Path(p).absolute()) for p in import_places() if os.path.exists(p) and _may_be_shown(p)]
    packages = [p for p in paths if not os.path.isdir(p) or Path(p).name in _PACKAGES or _below(p, folders)]
    projects = [p for p in paths if p not in packages]
    whole = [*folders, *packages]
    return ReadablePlaces(tuple(_outermost(_with_targets(whole))), tuple(_outermost(_with_targets(projects))))


def import_places() -> list[str]:
    """Return what Python imports from: its path, and the projects that are installed in place there."""
    path = [p for p in sys.path if p]
    return [*path, *(project for folder in path for project in _projects_in_place(folder))]


def _projects_in_place(folder: str) -> Iterator[str]:
    """Yield the projects whose packages in ``folder`` are links (``pip install --editable``), as PEP 610 records them:
    only some kinds of them are on Python's path.
    """
    for record in glob.glob(os.path.join(glob.escape(folder), "*.dist-info", "direct_url.json")):
        try:
            body = json.loads(Path(record).read_text(encoding="utf-8"))
            url = urlsplit(body["url"]) if body["dir_info"]["editable"] else None
        except (OSError, ValueError, KeyError, TypeError):
            continue  # installed otherwise, or a record that nobody can read
        if url is not None and url.scheme == "file":
            yield url2pathname(url.path)


def projects_of_job(import_paths: Iterable[str]) -> list[str]:
    """Return the folders of a job's import path that may be shown, without those inside others."""
    return _outermost(_with_targets(p for p in import_paths if os.path.isdir(p) and _may_be_shown(p)))


def private_entries(project: str) -> list[str]:
    """Return the hidden and private entries of a project's folder, at any depth; none of installed packages."""
    if _PACKAGES & set(Path(project).parts):
        return []
    private: list[str] = []
    waiting, count = [project], 0
    while waiting and count < _MOST_ENTRIES:
        folder = waiting.pop(0)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        count += len(entries)
        for entry in entries:
            if _PRIVATE.match(entry.name):
                private.append(entry.path)
            elif entry.is_dir(follow_symlinks=False) and entry.name not in _PACKAGES:
                waiting.append(entry.path)
    return private + waiting  # what was not looked through is not shown


def _there(patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        yield from sorted(glob.glob(pattern)) if "*" in pattern else [pattern]


def accelerators() -> list[str]:
    """Return the device files of the host's accelerators."""
    return [path for path in _there(ACCELERATORS) if os.path.exists(path) and not os.path.isdir(path)]


def _may_be_shown(path: str) -> bool:
    """Return whether a folder is narrow enough: not the root, a home, or what holds homes."""
    if not path or not os.path.isabs(path) or not os.path.exists(path):
        return False
    place, home = Path(os.path.realpath(path)), Path(os.path.realpath(os.path.expanduser("~")))
    return place != home and place not in home.parents and len(place.parts) > 1


def _with_targets(paths: Iterable[str]) -> Iterator[str]:
    """Yield each path, and where it leads if it is a link or lies behind one."""
    for path in paths:
        yield path
        if (target := os.path.realpath(path)) != path and os.path.exists(path):
            yield target


def _below(path: str, places: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(place) for place in places)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths without those below another, shortest first."""
    roots: list[str] = []
    for path in sorted({os.path.normpath(p) for p in paths if p}, key=lambda p: (p.count("/"), p)):
        if not _below(path, roots):
            roots.append(path)
    return roots
