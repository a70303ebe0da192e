"""Refuse system calls that a kernel file has no use for, by a seccomp filter in the step's process.

Namespaces leave the kernel's whole surface in reach, and without them a filter is what keeps a step from the machine's
sockets and processes. The filter is written here, in classic BPF, and needs no library: a host may have none.
``system_calls.json`` names the calls; its numbers hold on x86-64 and 64-bit ARM.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import struct
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from accelopt_profiling.worker.namespaces import NEW_IPC, NEW_MOUNTS, NEW_NETWORK, NEW_PIDS, NEW_USER

_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _JUMP_ANY_BIT, _AND, _RETURN = (
    0x20, 0x15, 0x25, 0x45, 0x54, 0x06,
)  # fmt: skip
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_OTHER_NAMESPACES = NEW_USER | NEW_MOUNTS | NEW_IPC | NEW_PIDS | NEW_NETWORK | 0x02000000 | 0x04000000 | 0x80
#: Type into a terminal, and choose text in one (``include/uapi/asm-generic/ioctls.h``, ``tty_ioctl``).
_TERMINAL_INPUT = (0x5412, 0x541C)
#: Larger buffers of a socket, in the kernel's memory, that no limit counts (``include/uapi/asm-generic/socket.h``).
_SOCKET_LEVEL, _BUFFER_SIZES = 1, (7, 8, 32, 33)
_UNIX, _INTERNET, _INTERNET_6, _NETLINK, _DATAGRAMS = 1, 2, 10, 16, 2
_PR_SET_SECCOMP, _FILTER = 22, 2

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


@dataclass(frozen=True)
class FilterScope:
    """What the filter has to keep from a step, because nothing else does.

    ``sockets``: the machine's network and unix sockets; ``signals``: other processes of its user. A ``device`` step may
    make files of memory, as drivers do.
    """

    sockets: bool = False
    signals: bool = False
    device: bool = False


def may_filter() -> bool:
    """Return whether this system takes a filter: Linux on a processor whose calls are known here."""
    return _machine() is not None


def filter_system_calls(scope: FilterScope) -> None:
    """Refuse this process and all its children what ``system_calls.json`` names, for good.

    The process must have given up privileges (``no_new_privs``). Raises OSError: the kernel takes no filter.
    """
    machine = _machine()
    if machine is None:
        raise OSError(errno.ENOSYS, "no filter of system calls is known for this machine")
    code = b"".join(struct.pack("=HBBI", *one) for one in _program(machine, scope, os.getpid()))
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, program, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


@cache
def _data() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("system_calls.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def _machine() -> dict[str, Any] | None:
    uname = os.uname()
    machine = _data()["machines"].get(uname.machine) if uname.sysname == "Linux" else None
    return machine if machine is not None and ctypes.sizeof(ctypes.c_void_p) == 8 else None


def _program(machine: dict[str, Any], scope: FilterScope, own: int) -> list[_Instruction]:
    """Return the instructions.

    A call that is newer than the table counts as absent, so programs do without it.
    """
    data, numbers = _data(), machine["numbers"]
    program = [
        (_LOAD, 0, 0, _ARCH), (_JUMP_EQUAL, 1, 0, machine["audit_arch"]), _end(errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER), (_JUMP_GREATER, 0, 1, machine["newest"]), _end(errno.ENOSYS),
    ]  # fmt: skip
    for group, error in (("refused", errno.EPERM), ("absent", errno.ENOSYS)):
        for name in (name for names in data[group].values() for name in names):
            if name in numbers and not (scope.device and name in ("memfd_create", "fallocate")):
                wrong = errno.EOPNOTSUPP if name == "fallocate" else error
                program += [(_JUMP_EQUAL, 0, 1, numbers[name]), _end(wrong)]

    def when(name: str, rule: list[_Instruction]) -> None:
        program.append((_JUMP_EQUAL, 0, len(rule) + 1, numbers[name]))
        program.extend([*rule, _end(0)])

    when("clone", [*_argument(0), (_JUMP_ANY_BIT, 0, 1, _OTHER_NAMESPACES), _end(errno.EPERM)])
    when("ioctl", [*_argument(1), *_unless_none(_TERMINAL_INPUT)])
    when("prlimit64", [*_argument(0), (_JUMP_EQUAL, 1, 0, 0), _end(errno.EPERM)])
    without_effect = (_RETURN, 0, 0, _ERROR)
    sizes = [part for option in _BUFFER_SIZES for part in ((_JUMP_EQUAL, 0, 1, option), without_effect)]
    buffers = [*_argument(2), *sizes]
    when("setsockopt", [*_argument(1), (_JUMP_EQUAL, 0, len(buffers), _SOCKET_LEVEL), *buffers])
    if scope.sockets:
        program += [(_JUMP_EQUAL, 0, 1, numbers["socket"]), _end(errno.EACCES)]
        pair = [*_argument(1), (_AND, 0, 0, 0xF), (_JUMP_EQUAL, 0, 1, _DATAGRAMS), _end(errno.EACCES)]
        when("socketpair", pair)
    else:
        routes = [*_argument(2), (_JUMP_EQUAL, 1, 0, 0), _end(errno.EPROTONOSUPPORT), _end(0)]
        allowed: list[_Instruction] = [(_JUMP_EQUAL, 0, len(routes), _NETLINK), *routes]
        for family in (_UNIX, _INTERNET, _INTERNET_6):
            allowed += [(_JUMP_EQUAL, 0, 1, family), _end(0)]
        when("socket", [*_argument(0), *allowed, _end(errno.EAFNOSUPPORT)])
    if scope.signals:
        for name in ("kill", "tgkill"):
            mine = [(_JUMP_EQUAL, 0, 1, value & 0xFFFFFFFF) for value in (own, 0, -own)]
            when(name, [*_argument(0), *(part for one in mine for part in (one, _end(0))), _end(errno.EPERM)])
        for name in ("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"):
            program += [(_JUMP_EQUAL, 0, 1, numbers[name]), _end(errno.EPERM)]
    return [*program, _end(0)]


def _argument(index: int) -> list[_Instruction]:
    """Load the lower half of an argument. All that are looked at are 32-bit numbers to the kernel."""
    return [(_LOAD, 0, 0, _ARGUMENTS + 8 * index)]


def _unless_none(values: tuple[int, ...]) -> list[_Instruction]:
    return [part for value in values for part in ((_JUMP_EQUAL, 0, 1, value), _end(errno.EPERM))]


def _end(error: int) -> _Instruction:
    return _RETURN, 0, 0, _ERROR | error if error else _ALLOW
