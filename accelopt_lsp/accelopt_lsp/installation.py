"""Check everything that AccelOpt uses: what is installed, what is missing and how to fix it.

No check imports torch or a Neuron SDK; they look for its files.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from accelopt_lsp.resources import memory_path
from accelopt_lsp.settings.layers import user_file
from accelopt_lsp.settings.load import Settings
from accelopt_profiling.triton_adapter.versions import REQUIREMENT, unsupported


@dataclass(frozen=True)
class Check:
    """``absent`` is something optional that is not there; ``broken`` something needed that does not work."""

    name: str
    state: Literal["ok", "absent", "broken"]
    found: str
    fix: str = ""


def all_checks(settings: Settings) -> list[Check]:
    """Check everything with these settings; seconds, as programs are asked for their versions."""
    return [
        python(),
        kernel_python(settings),
        package("numpy", "numpy", needed=True),
        package("ml_dtypes", "ml_dtypes", needed=True),
        torch(),
        triton(),
        ptxas(),
        neuron_sdk(),
        neuron_tools(),
        nvidia(),
        isolation(),
        ssh(settings),
        ray(settings),
        database(settings),
        settings_files(settings),
        model(settings),
    ]


def python() -> Check:
    return Check("Python", "ok", f"{platform.python_version()} at {sys.executable}")


#: Prints the versions of what kernels need, from metadata alone.
_VERSIONS = """import importlib.metadata as m, platform
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return "none"
print(platform.python_version(), *(f"{n} {version(n)}" for n in ("numpy", "torch", "triton")), sep=", ")"""


def kernel_python(settings: Settings) -> Check:
    """Return the Python whose packages kernels see, and where its name comes from."""
    name, chosen = "Python for kernels", settings.interpreter
    fix = "Name another with the setting `python`."
    try:
        done = subprocess.run(
            [chosen.path, "-I", "-c", _VERSIONS], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Check(name, "broken", f"{chosen} does not run: {error}", fix)
    detail = f"{chosen}: {done.stdout.strip()}"
    if "numpy none" in detail:
        return Check(name, "broken", detail, f"It needs NumPy. {fix}")
    version = detail.rpartition("triton ")[2]
    reason = "" if version == "none" else unsupported(version, chosen.path)
    return Check(name, "broken" if reason else "ok", detail, reason)


def package(name: str, distribution: str, *, needed: bool) -> Check:
    """Return an installed package, by its metadata."""
    try:
        return Check(name, "ok", importlib.metadata.version(distribution))
    except importlib.metadata.PackageNotFoundError:
        state: Literal["broken", "absent"] = "broken" if needed else "absent"
        return Check(name, state, "not installed", f"Run `{sys.executable} -m pip install {distribution}`.")


def torch() -> Check:
    check = package("torch", "torch", needed=False)
    if check.state == "ok":
        return check
    return Check("torch", "absent", check.found, "For Triton kernels: `pip install 'accelopt-lsp[triton]'`.")


def triton() -> Check:
    check = package("triton", "triton", needed=False)
    if check.state != "ok":
        return Check(
            "triton", "absent", check.found, "For Triton kernels: `pip install 'accelopt-lsp[triton]'`."
        )
    reason = unsupported(check.found, sys.executable)
    return Check("triton", "broken", check.found, reason) if reason else check


def ptxas() -> Check:
    """Return the assembler that comes with Triton; without it registers and spills of NVIDIA kernels are not
    known."""
    fix = f"It comes with triton: `pip install --force-reinstall '{REQUIREMENT}'`."
    spec = importlib.util.find_spec("triton")
    folders = list(spec.submodule_search_locations or []) if spec else []
    override = os.environ.get("TRITON_PTXAS_PATH")
    candidates = [override] if override else [f"{folder}/backends/nvidia/bin/ptxas" for folder in folders]
    for path in candidates:
        if os.access(path, os.X_OK):
            try:
                done = subprocess.run(
                    [path, "--version"], capture_output=True, text=True, timeout=20, check=True
                )
            except (OSError, subprocess.SubprocessError) as error:
                return Check("ptxas", "broken", f"{path} does not run: {error}", fix)
            release = next((line for line in done.stdout.splitlines() if "release" in line), path)
            return Check("ptxas", "ok", release.strip())
    return Check("ptxas", "absent", "not found", fix)


def neuron_sdk() -> Check:
    """Return the Neuron compiler; PyPI has placeholders of these names, so a version alone says nothing."""
    for module, distribution in (("neuronxcc.nki", "neuronx-cc"), ("nki.language", "nki")):
        try:
            there = importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):
            there = False
        if there:
            version = package(module, distribution, needed=False).found
            return Check("NKI SDK", "ok", f"{module} {version}")
    return Check(
        "NKI SDK",
        "absent",
        "not installed: NKI kernels run in AccelOpt's own emulator",
        "On a Trainium machine install neuronx-cc or nki from AWS's Neuron package index (see the Neuron "
        "documentation); the packages of these names elsewhere are placeholders.",
    )


def neuron_tools() -> Check:
    """Return whether kernels can be timed on this machine's Trainium; nothing is started."""
    from accelopt_profiling.trainium.toolchain import NOT_YET_RUN, find_toolchain, open_device
    from accelopt_profiling.trainium.tools import DeviceError

    toolchain = find_toolchain(os.environ)
    tools = ", ".join(toolchain.tools) or "no tools"
    try:
        device = open_device(toolchain)
    except DeviceError as failure:
        detail = f"{tools}: {failure.message}; times are estimated (adapters for devices: {NOT_YET_RUN})"
        return Check(
            "Trainium", "absent", detail, failure.fix if toolchain.tools or toolchain.devices else ""
        )
    detail = (
        f"{len(toolchain.devices)} devices, {tools}; adapter for the {device.generation} tools, {NOT_YET_RUN}"
    )
    return Check("Trainium", "ok", detail, "Tell us whether it ran: `accelopt doctor --bundle report.zip`.")


def nvidia() -> Check:
    from accelopt_profiling.timing import NOT_YET_RUN

    smi = shutil.which("nvidia-smi")
    if smi is None:
        return Check(
            "NVIDIA GPU",
            "absent",
            f"no nvidia-smi: times on GPUs are estimated (timing there: {NOT_YET_RUN})",
        )
    query = [smi, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Check("NVIDIA GPU", "absent", f"nvidia-smi does not answer: {error}", "Check the driver.")
    devices = "; ".join(done.stdout.split("\n")).strip("; ")
    detail = f"{devices}; timing on GPUs: {NOT_YET_RUN}"
    return Check("NVIDIA GPU", "ok", detail, "Try it out: `accelopt bench device` (docs/how-to/gpu.md).")


def isolation() -> Check:
    """Return what this machine's kernel lets the worker keep from user code."""
    from accelopt_profiling.worker.isolation import probe_isolation
    from accelopt_profiling.worker.sandbox_plan import SandboxPlan

    with tempfile.TemporaryDirectory(prefix="accelopt-doctor-") as base:
        state, _ = probe_isolation(SandboxPlan.of_worker(Path(base)))
    if state.complete:
        return Check(
            "isolation", "ok", "kernels run without network, among their own processes and files only"
        )
    fix = "Allow unprivileged user namespaces (a container: run it with --security-opt seccomp=unconfined)."
    return Check("isolation", "absent", f"{state.note or 'not complete'}; limits hold all the same", fix)


def ray(settings: Settings) -> Check:
    clusters = [name for name, host in settings.hosts.items() if host.ray]
    check = package("ray", "ray", needed=bool(clusters))
    if check.state == "ok":
        return check
    return Check("ray", check.state, check.found, "For Ray clusters: `pip install 'accelopt-lsp[ray]'`.")


def ssh(settings: Settings) -> Check:
    client = shutil.which("ssh")
    hosts = [name for name, host in settings.hosts.items() if host.ssh]
    host_list = f", hosts: {', '.join(hosts)} (try them with `accelopt hosts`)" if hosts else ""
    if client:
        return Check("ssh", "ok", client + host_list)
    state: Literal["broken", "absent"] = "broken" if hosts else "absent"
    return Check("ssh", state, "not found" + host_list, "Install OpenSSH's client to use hosts.")


def database(settings: Settings) -> Check:
    """Return whether the memory can be read; nothing is created."""
    from accelopt_memory.errors import MemoryUnavailableError
    from accelopt_memory.memory import Memory

    path = memory_path(settings)
    if settings.memory.mode == "off":
        return Check("memory", "ok", "nothing is kept: `memory.mode` is `off`")
    try:
        with Memory.open(path, read_only=True) as memory:
            stats = memory.stats()
    except MemoryUnavailableError as error:
        return Check("memory", "broken", str(error))
    if not path.exists():
        nearest = next(p for p in path.parents if p.exists())
        if not os.access(nearest, os.W_OK):
            fix = "Set ACCELOPT_DB to a file that you may write."
            return Check("memory", "broken", f"{path} cannot be made", fix)
        return Check("memory", "ok", f"{path} (not made yet)")
    if not os.access(path, os.W_OK):
        fix = "Make it writable, or set ACCELOPT_DB to another file."
        return Check("memory", "broken", f"{path} is read-only", fix)
    return Check("memory", "ok", f"{path}: {stats.pairs} pairs, {stats.runs} runs, {stats.bytes >> 10} KiB")


def settings_files(settings: Settings) -> Check:
    place = user_file(os.environ)
    there = "" if place.exists() else " (not there)"
    sources = sorted(set(settings.origins.values()))
    detail = f"yours: {place}{there}" + (f"; in use: {', '.join(sources)}" if sources else "; all defaults")
    unapproved = settings.unapproved
    waits = (
        [f"`accelopt trust` approves what is not used yet: {unapproved}"] if unapproved is not None else []
    )
    if settings.complaints or waits:
        return Check("settings", "broken", detail, "\n".join([*map(str, settings.complaints), *waits]))
    return Check("settings", "ok", detail)


def model(settings: Settings) -> Check:
    if not settings.asks_models:
        return Check("model", "absent", "none configured: rewrites come from rules and the memory")
    key = settings.model.api_key_env
    detail = f"{settings.model.model} at {settings.model.base_url}"
    if not os.environ.get(key):
        return Check("model", "ok", f"{detail}; {key} is not set (a key in the system keyring works too)")
    return Check("model", "ok", f"{detail}, key from {key}")
