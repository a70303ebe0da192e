"""Watch a candidate's process through Python's audit events, and end it at the first operation that is not allowed.

An audit hook cannot be removed again, so nothing that the candidate runs can switch it off. A hook sees what is about
to happen and who asked for it: the nearest frame that belongs to the candidate's files or to this project.
"""

from __future__ import annotations

import _thread
import os
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterable
from importlib.machinery import all_suffixes
from pathlib import Path
from types import FrameType
from typing import Any

import accelopt_profiling
from accelopt_profiling.worker.readable_places import import_places

#: Tells the client of a violation before anything else can happen: (code, message).
Report = Callable[[str, str], None]

_PROCESSES = (
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.exec",
    "os.spawn",
    "os.system",
    "subprocess.Popen",
    "pty.spawn",
)
_EVENTS: dict[str, str] = {
    **dict.fromkeys(_PROCESSES, "background-work"),
    **dict.fromkeys(("_thread.start_new_thread", "_thread.start_joinable_thread"), "background-work"),
    **dict.fromkeys(("gc.get_objects", "gc.get_referrers", "gc.get_referents"), "reads-the-gate"),
    **dict.fromkeys(("sys._getframe", "sys._current_frames", "sys._current_exceptions"), "reads-the-gate"),
    "object.__getattr__": "reads-the-gate",
    **dict.fromkeys(("sys.settrace", "sys.setprofile", "sys.addaudithook"), "patches"),
    **dict.fromkeys(("exec", "compile", "code.__new__", "function.__new__", "marshal.loads"), "obfuscated"),
    **dict.fromkeys(("os.kill", "os.killpg", "signal.pthread_kill"), "ends-the-process"),
    **dict.fromkeys(("mmap.__new__", "fcntl.fcntl", "fcntl.ioctl", "fcntl.flock"), "reaches-out"),
    **dict.fromkeys(("resource.setrlimit", "resource.prlimit"), "reaches-out"),
}  # fmt: skip
#: Attributes that lead to frames; reading them is an audit event.
_FRAMES = frozenset(["tb_frame", "gi_frame", "cr_frame", "ag_frame"])
#: Events whose first arguments are paths.
_PATHS = frozenset(
    [
        "open", "os.listdir", "os.scandir", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink",
        "os.chmod", "os.chown", "os.truncate", "os.utime", "os.chdir", "os.mkfifo", "os.mknod", "os.setxattr",
    ]
)  # fmt: skip
_READS = frozenset(["os.listdir", "os.scandir"])
#: Files about the machine that libraries and honest code read.
_SYSTEM = ("/dev/null", "/dev/urandom", "/dev/random", "/proc/cpuinfo", "/proc/meminfo", "/proc/self/status", "/etc/",
           "/sys/devices/", "/usr/", "/lib/", "/lib64/", "/opt/")  # fmt: skip
#: The files of the frames that import a module, and that read its file.
_IMPORT, _IMPORT_FILE = "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"
_MODULES = tuple(all_suffixes())
#: Exit status of a process that was ended here; it never counts as a result.
_ENDED_HERE = 45
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Watches this process from ``start`` to its end.

    ``root`` is the job's folder: the candidate may read its own files in ``src``, and libraries that it calls may use
    ``home``, ``tmp`` and ``work``; its own code may where the original ``uses_files``, else only files without a name.
    ``report`` is called for each violation; the process then ends at once, so that nothing more happens. What the
    ``unchanged`` files of ``src``, which the original has too, do while they are imported is no violation.
    """

    def __init__(
        self, root: Path, report: Report, unchanged: Iterable[str] = (), uses_files: bool = False
    ) -> None:
        self._source = str((root / "src").resolve()) + os.sep
        self._unchanged = frozenset(self._source + name for name in unchanged)
        own = [str((root / part).resolve()) for part in ("home", "tmp", "work")]
        self._writable = tuple(own)
        self._own_use = self._writable if uses_files else ()
        paths = sysconfig.get_paths()
        self._standard = tuple(
            {str(Path(p).resolve()) + os.sep for p in (paths["stdlib"], paths["platstdlib"])}
        )
        tempfile.gettempdir()  # looks for the folder by writing to it: once, and not for the candidate
        libraries = {sys.prefix, sys.base_prefix, sys.exec_prefix, *paths.values()}
        libraries |= {p for p in sys.path if "site-packages" in p or "dist-packages" in p}
        real = {str(Path(p).resolve()) for p in libraries if p} | {p for p in libraries if p}
        places = {str(Path(p)) for p in accelopt_profiling.__path__}
        self._ours = tuple({*places, *(str(Path(p).resolve()) for p in places)})
        archives = [str(p) for place in self._ours for p in Path(place).parents if p.is_file()]
        self._readable = (str((root / "src").resolve()), *sorted(real), *self._ours, *archives)
        self._imported_from = tuple(os.path.realpath(p) for p in import_places())
        self._report = report
        self._busy = False
        self._exit, self._getframe = os._exit, sys._getframe

    def start(self) -> None:
        sys.addaudithook(self._hear)
        if sys.version_info < (3, 12):  # which tells of new threads by itself
            start = _thread.start_new_thread

            def watched(*arguments: Any) -> int:
                self._hear("_thread.start_new_thread", arguments)
                return start(*arguments)

            for module in (_thread, threading):
                for name in ("start_new_thread", "start_new", "_start_new_thread"):
                    if hasattr(module, name):
                        setattr(module, name, watched)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._busy or (
            event not in _EVENTS and event not in _PATHS and not event.startswith(("socket.", "ctypes."))
        ):
            return
        self._busy = True
        try:
            fault = self._judge(event, arguments)
            if fault is not None:
                try:
                    self._report(*fault)
                finally:  # whether or not anybody hears of it
                    self._exit(_ENDED_HERE)
        finally:
            self._busy = False

    def _judge(self, event: str, arguments: tuple[Any, ...]) -> tuple[str, str] | None:
        asking = self._getframe(2)
        while asking.f_back is not None and asking.f_code.co_filename == __file__:
            asking = asking.f_back
        if event in ("exec", "compile", "code.__new__", "function.__new__", "marshal.loads"):
            # libraries do this for their own good (named tuples, data classes, imports); only direct use counts
            if not self._is_candidate(asking):
                return None
        elif event == "object.__getattr__":
            # printing a traceback reads frames as well: only direct use counts, and walking along one
            if arguments[1:2] and arguments[1] not in _FRAMES:
                return None
            while asking.f_back is not None and (
                asking.f_code.co_name.startswith("walk_") or asking.f_code.co_filename.endswith("/inspect.py")
            ):
                asking = asking.f_back
            if not self._is_candidate(asking):
                return None
            return "reads-the-gate", f"It reaches for a frame (.{arguments[1]})."
        elif event == "sys._getframe":
            while asking.f_back is not None and asking.f_code.co_filename.endswith(
                ("/inspect.py", "/traceback.py")
            ):
                asking = asking.f_back
            if not self._is_candidate(asking):
                return None
        elif not self._asked_by_candidate(asking):
            return None
        if event in _PATHS:
            return self._judge_path(event, arguments, asking)
        if event.startswith("socket."):
            return (
                None if event == "socket.gethostname" else ("reaches-out", f"It used the network ({event}).")
            )
        if event.startswith("ctypes."):
            return self._judge_native(event, arguments, asking)
        return _EVENTS[event], f"It did what a kernel has no reason to do ({event})."

    def _judge_native(
        self, event: str, arguments: tuple[Any, ...], asking: FrameType
    ) -> tuple[str, str] | None:
        """Importing ``ctypes`` opens the program itself and makes prototypes.

        NumPy does so for ``array.ctypes``.
        """
        frame: FrameType | None = asking
        while frame is not None and not self._is_candidate(frame):
            if frame.f_code.co_name == "<module>" and "ctypes" in frame.f_code.co_filename:
                return None
            frame = frame.f_back
        return "native-code", f"It calls native code ({event})."

    def _judge_path(
        self, event: str, arguments: tuple[Any, ...], asking: FrameType
    ) -> tuple[str, str] | None:
        path, writing = arguments[0] if arguments else None, event not in ("open", *_READS)
        if event == "open":
            mode, flags = (*arguments[1:], None, None)[:2]
            writing = (
                any(c in mode for c in "wax+") if isinstance(mode, str) else bool(int(flags or 0) & _WRITING)
            )
        if event in ("os.link", "os.symlink"):
            return "writes-outside", f"It makes a link ({event}), which a kernel has no reason to do."
        if path is None:
            return None
        if (
            event == "open"
            and mode is None
            and not isinstance(path, int)
            and ".." in Path(os.fsdecode(path)).parts
        ):
            return (
                "reaches-out",
                "It opens a path with `..` in it as a descriptor.",
            )  # relative to which folder?
        if isinstance(path, int):
            return self._judge_descriptor(path)
        text = os.path.realpath(os.fsdecode(path))
        usable = self._own_use if self._by_itself(asking) else self._writable
        if writing and event == "open" and os.path.isdir(text) and _below(text, self._writable):
            return None  # a file without a name, or one whose own opening is heard next
        if writing:
            if not _below(text, usable) and text != os.devnull:
                return "writes-outside", f"It writes to {_short(text)} ({event})."
        elif (
            not _below(text, (*self._readable, *usable))
            and not text.startswith(_SYSTEM)
            and not self._is_import(text, asking)
        ):
            return "reads-files", f"It reads {_short(text)} ({event})."
        return None

    def _is_import(self, path: str, asking: FrameType) -> bool:
        """Check whether an import asks for a module's file or a folder of modules, or anybody for the text of a module
        that is imported, as ``triton.jit`` does.
        """
        if not _below(path, self._imported_from) or not (path.endswith(_MODULES) or os.path.isdir(path)):
            return False
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        return asking.f_code.co_filename == _IMPORT_FILE or any(
            isinstance(file, str) and os.path.realpath(file) == path for file in files
        )

    def _judge_descriptor(self, number: int) -> tuple[str, str] | None:
        """Return a descriptor that is opened by its number has to be a file in the candidate's own
        folders."""
        try:
            held = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            held = (
                "" if os.path.isdir("/proc/self/fd") else str(self._writable[0])
            )  # not Linux: nothing tells
        if number <= 2 or not held or _below(held.removesuffix(" (deleted)"), self._writable):
            return None
        return "reaches-out", f"It opens the descriptor {number}, which is no file of its own."

    def _by_itself(self, asking: FrameType) -> bool:
        """Check whether the candidate asks through the standard library at most, and no other library for it."""
        frame: FrameType | None = asking
        while frame is not None and not self._is_candidate(frame):
            name = frame.f_code.co_filename
            library = name.startswith("<frozen importlib") or "-packages" in name
            if library or not name.startswith(("<frozen ", *self._standard)):
                return False
            frame = frame.f_back
        return True

    def _is_candidate(self, frame: FrameType) -> bool:
        name = frame.f_code.co_filename
        if name in self._unchanged:
            return self._asked_by_candidate(frame)
        return name.startswith(self._source) or name in ("<string>", "<stdin>", "<unknown>")

    def _asked_by_candidate(self, frame: FrameType | None) -> bool:
        """Check whether the candidate's code is nearer than this project's, and than the import of an unchanged
        file.
        """
        unchanged = False
        while frame is not None:
            name = frame.f_code.co_filename
            if name in self._unchanged:
                unchanged = True
            elif name.startswith(self._source):
                return True
            elif unchanged and name == _IMPORT:
                return False
            elif name.startswith(self._ours):
                return unchanged
            frame = frame.f_back
        return unchanged


def _below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(place + os.sep) for place in places)


def _short(path: str) -> str:
    return path if len(path) < 80 else "..." + path[-76:]
