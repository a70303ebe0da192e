"""Hide the host's keys, agents and other jobs from a step, and make all files but its own read-only."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from accelopt_profiling.worker import namespaces

#: Folders and files below the user's home that hold keys and logins.
_KEYS = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".netrc", ".git-credentials", ".pgpass", ".pypirc",
    ".npmrc", ".cargo/credentials", ".cargo/credentials.toml", ".vault-token", ".password-store", ".mozilla",
    ".config/gcloud", ".config/gh", ".config/git/credentials", ".config/pip", ".config/op", ".config/google-chrome",
    ".config/chromium", ".local/share/keyrings", ".huggingface", ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
)  # fmt: skip
#: Sockets through which a process could act outside its namespaces.
_SOCKETS = ("/run/user", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock")

#: Through these root without any privilege could change or end the whole machine.
_KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")


def protect_files(base: Path) -> None:
    """In a new mount namespace with its own ``/proc``: hide keys and agents, make everything but ``base`` read-only.

    ``base`` is the worker's folder of jobs.

    Raises:
        OSError: the kernel is older than 5.12 or refuses; keys and agents may be hidden all the same.
    """
    home = Path(os.path.expanduser("~"))
    agents = [
        *Path(tempfile.gettempdir()).glob("ssh-*"),
        *map(Path, filter(None, [os.environ.get("SSH_AUTH_SOCK")])),
    ]
    for place in [*(home / name for name in _KEYS), *map(Path, _SOCKETS), *agents]:
        _hide(place)
    for setting in filter(os.path.exists, _KERNEL_SETTINGS):
        namespaces.bind(
            setting, setting
        )  # a mount of its own stays read-only when ``/proc`` becomes writable
    namespaces.bind(str(base), str(base))
    namespaces.make_everything_read_only()
    namespaces.make_writable(str(base))
    namespaces.make_writable("/proc")
    if os.path.isdir("/dev/shm"):
        namespaces.mount_empty("/dev/shm", mebibytes=2048)


def keep_only(folder: Path) -> None:
    """Hide all jobs' folders except ``folder``, which stays at the same path."""
    own = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        for other in folder.parent.parent.glob("accelopt-[0-9]*-*"):  # not the worker's own archive
            if other != folder.parent:
                _hide(other)
        namespaces.mount_empty(str(folder.parent))
        folder.mkdir()
        namespaces.bind(f"/proc/self/fd/{own}", str(folder))
    finally:
        os.close(own)


def _hide(place: Path) -> None:
    with contextlib.suppress(OSError):  # not there, or not ours to see in the first place
        if place.is_dir():
            namespaces.mount_empty(str(place), read_only=True)
        elif place.exists():
            namespaces.bind(os.devnull, str(place))
