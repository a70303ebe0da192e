"""The stand-in modules ``nki``, ``nki.language``, ``nki.isa``, ``nki.collectives`` and ``nki.typing``."""

from __future__ import annotations

from functools import partial, wraps
from typing import Any

from accelopt_profiling.nki.current import language
from accelopt_profiling.nki.current.collectives import ReplicaGroup
from accelopt_profiling.nki.current.runtime_numbers import KernelNkiScalar, KernelRegister
from accelopt_profiling.nki.current.tensor import KernelNkiTensor
from accelopt_profiling.nki.current.versions import change, changes, emulated_version
from accelopt_profiling.nki.frontend.binding import (
    NkiInstruction,
    NkiValidationError,
    bound_functions,
    choices,
)
from accelopt_profiling.nki.frontend.handle import TYPING
from accelopt_profiling.nki.frontend.jit import Launcher, decorator
from accelopt_profiling.nki.frontend.namespace import Namespace, constants_of
from accelopt_profiling.nki.frontend.torch_tensors import in_torch, is_torch
from accelopt_profiling.nki.replay.range_loops import observe


def modules(launch: Launcher, version: str | None = None) -> dict[str, Any]:
    """Return every stand-in by its import name, as ``version`` ("0.3" to "0.7") has them.

    Raises:
        UnknownVersionError: ``ACCELOPT_NKI_VERSION`` names a version that there is not.
    """
    emulated = version or emulated_version()
    jit = decorator(
        launch, lambda machine: language.prepare(machine, emulated), read=partial(observe, ranges=True)
    )

    def simulate(kernel: Any) -> Any:
        """Return the kernel as a function of NumPy arrays or torch's tensors, which returns what it takes."""
        simulated = jit(kernel)

        @wraps(simulated)
        def call(*args: Any, **named: Any) -> Any:
            result = simulated(*args, **named)
            return in_torch(result) if any(map(is_torch, (*args, *named.values()))) else result

        return call

    nl = _module("nki.language", {**language.constants(), **bound_functions("current", "nl", True)}, emulated)
    classes = {
        "VirtualRegister": KernelRegister, "NkiScalar": KernelNkiScalar, "NkiInstruction": NkiInstruction,
        "NkiValidationError": NkiValidationError,
    }  # fmt: skip
    functions = bound_functions("current", "nisa", plain_numbers=True)
    exchanges = bound_functions("current", "nki.collectives", plain_numbers=True)
    collectives = _module("nki.collectives", {"ReplicaGroup": ReplicaGroup, **exchanges}, emulated)
    nisa = _module("nki.isa", {**choices("current"), **classes, **functions}, emulated)
    constants = constants_of("nki.isa", nisa)
    typing = Namespace("nki.typing", {"tensor": KernelNkiTensor, **TYPING})
    nki = _module(
        "nki",
        {
            "jit": jit, "trace": jit, "simulate": simulate, "language": nl, "isa": nisa, "typing": typing,
            "collectives": collectives,
            "_accelopt_emulated": True, "__version__": f"{emulated}.0+emulated",
        },
        emulated,
    )  # fmt: skip
    return {m.__name__: m for m in (nki, nl, nisa, constants, typing, collectives)}


def _module(name: str, names: dict[str, Any], version: str) -> Namespace:
    """Return a stand-in that has what the version has, and says of the rest when it came or went."""
    missing: dict[str, str] = {}
    for dotted in changes("names"):
        parent, _, short = dotted.rpartition(".")
        reason = change("names", dotted, version) if parent == name else None
        if reason is None or reason.kind == "deprecated" or reason.unless:
            continue
        names.pop(short, None)
        if reason.kind == "added":
            missing[short] = f"{dotted} came with NKI {reason.version}; the emulated version is {version}"
        else:
            missing[short] = f"{dotted} is gone since NKI {reason.version}; use {reason.instead}"
    return Namespace(name, names, missing)
