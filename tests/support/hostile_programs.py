"""Programs that a kernel file could hold and that try to leave the sandbox: one per way out, each harmless where it
succeeds. Each ends with ``ValueError("ESCAPED ...")`` where the way is open, and with "HELD" and the reason elsewhere.

``prepare`` lays out what they look for: a home with keys, histories and another tool's credentials, a project, sockets
that answer, a process to end, and the memory and consents of a person.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import textwrap
import threading
from dataclasses import dataclass, field
from pathlib import Path

_FRAME = """
import ctypes, errno, glob, os, signal, socket, struct, sys, time
BAIT = {bait}
c = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    result = c.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def number(**by_machine):
    return by_machine[os.uname().machine]
def read(path):
    with open(path, "rb") as file:
        return file.read(64)
def attack():
{body}
try:
    got = attack()
except (OSError, AttributeError) as error:
    raise ValueError("HELD " + repr(error)) from None
raise ValueError(("ESCAPED " if got else "HELD ") + repr(got)[:200])
"""


@dataclass
class Bait:
    """What the programs look for, by name; ``close`` ends what was started for it."""

    places: dict[str, str | int]
    home: Path
    _started: list[subprocess.Popen[bytes] | socket.socket] = field(default_factory=list)

    def close(self) -> None:
        for one in self._started:
            if isinstance(one, socket.socket):
                one.close()
            else:
                one.kill()
                one.wait()


def prepare(folder: Path, user: int | None = None) -> Bait:
    """Lay the bait below ``folder``; with ``user`` all of it, and the process, belong to that user."""
    home, project = folder / "home", folder / "project"
    files = {
        home / ".bash_history": "export API_KEY=sk-history",
        home / ".python_history": "key = 'sk-history'",
        home / ".ssh/id_ed25519": "PRIVATE KEY",
        home / ".config/other-tool/credentials.json": "{}",
        home / ".local/share/accelopt/memory.db": "SQLite",
        home / ".local/share/accelopt/model_consents.json": "{}",
        home / "notes.txt": "private",
        project / ".env": "TOKEN=sk-env",
        project / "deep/er/.env": "TOKEN=sk-env",
        project / "kernels.py": "x = 1",
        folder / "elsewhere.txt": "private",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (project / "key_link.py").symlink_to(home / ".ssh/id_ed25519")
    started: list[subprocess.Popen[bytes] | socket.socket] = []
    sockets = {"path": str(folder / "s"), "abstract": f"\0accelopt-{os.getpid()}-{folder.name}"}
    for address in sockets.values():
        started.append(_answering(address))
    loopback = socket.create_server(("127.0.0.1", 0))
    started.append(loopback)
    if user is not None:
        subprocess.run(["chown", "-hR", str(user), str(folder)], check=True)
    victim = subprocess.Popen(["sleep", "600"], user=user, start_new_session=True)
    started.append(victim)
    places: dict[str, str | int] = {
        "home": str(home), "project": str(project), "folder": str(folder), "socket": sockets["path"],
        "abstract": sockets["abstract"], "port": loopback.getsockname()[1], "victim": victim.pid,
    }  # fmt: skip
    return Bait(places, home, started)


def _answering(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    if address[0] != "\0":
        os.chmod(address, 0o777)

    def serve() -> None:
        while True:
            try:
                listener.accept()[0].close()
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    return listener


def program(name: str, bait: Bait) -> str:
    """Return the text of one of ``PROGRAMS``."""
    body = textwrap.indent(textwrap.dedent(PROGRAMS[name]).strip(), "    ")
    return _FRAME.replace("{bait}", json.dumps(bait.places)).replace("{body}", body)


#: Each is the body of a function that returns something true where it got out.
PROGRAMS = {
    # -- sockets -------------------------------------------------------------------------------------------------
    "a unix socket by path": """
        s = socket.socket(socket.AF_UNIX); s.connect(BAIT["socket"]); return "connected"
    """,
    "an abstract unix socket": """
        s = socket.socket(socket.AF_UNIX); s.connect(BAIT["abstract"]); return "connected"
    """,
    "a datagram to a unix socket": """
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            a.sendto(b"x", BAIT["socket"])
        except OSError as error:
            return error.errno in (errno.EPROTOTYPE, errno.ECONNREFUSED)  # it was found
        return True
    """,
    "a port of this machine": """
        socket.create_connection(("127.0.0.1", BAIT["port"]), 2); return "connected"
    """,
    "another machine": """
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("192.0.2.1", 53)); return "routed"
    """,
    "netlink": """
        s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9); s.bind((0, 0)); return True
    """,
    "sockets through io_uring": """
        return call(425, 8, ctypes.create_string_buffer(120)) >= 0
    """,
    # -- files ---------------------------------------------------------------------------------------------------
    "a shell's history": 'return read(BAIT["home"] + "/.bash_history")',
    "Python's history": 'return read(BAIT["home"] + "/.python_history")',
    "a private key": 'return read(BAIT["home"] + "/.ssh/id_ed25519")',
    "another tool's credentials": 'return read(BAIT["home"] + "/.config/other-tool/credentials.json")',
    "the memory": 'return read(BAIT["home"] + "/.local/share/accelopt/memory.db")',
    "the consents": 'return read(BAIT["home"] + "/.local/share/accelopt/model_consents.json")',
    "any file of the home": 'return read(BAIT["home"] + "/notes.txt")',
    "a file elsewhere": 'return read(BAIT["folder"] + "/elsewhere.txt")',
    "the project's .env": 'return read(BAIT["project"] + "/.env")',
    "a .env deep in the project": 'return read(BAIT["project"] + "/deep/er/.env")',
    "a link of the project to a key": 'return read(BAIT["project"] + "/key_link.py")',
    "the passwords": 'return read("/etc/shadow")',
    "the kernel's messages": 'return os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK) >= 0',
    "a terminal": """
        for path in ("/dev/tty", "/dev/console", "/dev/tty1", "/dev/pts/0", "/dev/ptmx", "/dev/vcs1"):
            try:
                return os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK), path
            except OSError:
                pass
    """,
    "a disk": """
        return [d for d in glob.glob("/dev/[svz][dr]*") + glob.glob("/dev/loop*") if os.access(d, os.R_OK)]
    """,
    "the worker's other files": """
        own = os.path.dirname(os.path.dirname(os.getcwd()))
        os.mkfifo("x")
        return [p for p in glob.glob(own + "/*") + glob.glob(os.path.dirname(own) + "/accelopt-*")
                if p not in (os.path.dirname(os.getcwd()), own)]
    """,
    "write to the temporary folder": """
        open("/tmp/accelopt-stray", "w"); os.unlink("/tmp/accelopt-stray"); return "written"
    """,
    "write to the home": 'open(BAIT["home"] + "/.bashrc", "a"); return "written"',
    "change a source of the job": """
        open(__file__, "a").write("# changed"); return "changed"
    """,
    "replace a source of the job": """
        os.rename(__file__, __file__ + ".old"); return "renamed"
    """,
    "a setting of the kernel": 'open("/proc/sys/kernel/hostname", "r+"); return "opened"',
    "the machine's other files": """
        places = ("/home", "/srv", "/mnt", "/media", "/boot", "/var/log", "/var/lib/dpkg", "/root/.bashrc")
        return [p for p in places if os.access(p, os.R_OK) and (os.path.isfile(p) or os.listdir(p))]
    """,
    # -- processes -----------------------------------------------------------------------------------------------
    "signal a process": 'os.kill(BAIT["victim"], 0); return "may signal it"',
    "signal every process": """
        os.kill(-1, 0); return len([n for n in os.listdir("/proc") if n.isdigit()]) > 4
    """,
    "signal by descriptor": """
        signal.pidfd_send_signal(os.pidfd_open(BAIT["victim"]), 0); return "may signal it"
    """,
    "the memory of a process": "return os.open(f\"/proc/{BAIT['victim']}/mem\", os.O_RDONLY) >= 0",
    "the environment of a process": "return read(f\"/proc/{BAIT['victim']}/environ\")",
    "the files of a process": "return os.readlink(f\"/proc/{BAIT['victim']}/cwd\")",
    "limits of a process": """
        import resource
        resource.prlimit(BAIT["victim"], resource.RLIMIT_CORE, (0, 0)); return "changed"
    """,
    "its own first process": """
        for pid in (1, os.getppid()):
            if pid:
                os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
                return "memory of " + str(pid)
    """,
    "trace a process": """
        c.ptrace.restype = ctypes.c_long
        if c.ptrace(16, BAIT["victim"], 0, 0) < 0 and c.ptrace(0, 0, 0, 0) < 0:
            raise OSError(ctypes.get_errno(), "ptrace")
        return "traces"
    """,
    "variables with keys": """
        started = open("/proc/self/environ", "rb").read().split(b"\\0")
        names = {*os.environ, *(v.partition(b"=")[0].decode() for v in started)}
        return sorted(n for n in names if "KEY" in n or "TOKEN" in n or "SSH" in n)
    """,
    # -- the kernel ----------------------------------------------------------------------------------------------
    "be root": "return os.getuid() == 0 or os.geteuid() == 0",
    "become root": "os.setuid(0); return True",
    "have a capability": """
        for line in open("/proc/self/status"):
            if line.startswith(("CapEff", "CapPrm", "CapInh")) and int(line.split()[1], 16):
                return line
    """,
    "namespaces of its own": """
        if c.unshare(0x10000000) < 0:
            raise OSError(ctypes.get_errno(), "unshare")
        return "unshared"
    """,
    "namespaces of a child": """
        pid = call(number(x86_64=56, aarch64=220), 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0); return "cloned"
    """,
    "mount": """
        if c.mount(b"none", b"/", None, 32 | 4096, None) < 0:
            raise OSError(ctypes.get_errno(), "mount")
        return "mounted"
    """,
    "keyrings": """
        return call(number(x86_64=248, aarch64=217), b"user", b"accelopt", b"x", 1, -4) > 0
    """,
    "read keyrings": """
        return call(number(x86_64=250, aarch64=219), 0, -4, 0, 0, 0) > 0
    """,
    "type into a terminal": """
        import fcntl
        master, slave = os.openpty()
        fcntl.ioctl(slave, 0x540E, 0)
        fcntl.ioctl(slave, 0x5412, b"x")
        return "typed"
    """,
    "programs in the kernel": """
        return call(number(x86_64=321, aarch64=280), 0, ctypes.create_string_buffer(72), 72) > 0
    """,
    "page faults of its own": "return call(number(x86_64=323, aarch64=282), 1) >= 0",
    "performance counters": """
        attributes = struct.pack("=IIQ", 1, 64, 0) + bytes(32) + struct.pack("=Q", 0x60) + bytes(8)
        return call(number(x86_64=298, aarch64=241), ctypes.create_string_buffer(attributes), 0, -1, -1, 0) >= 0
    """,
    "calls of 32 bits": """
        import mmap
        if os.uname().machine != "x86_64": return
        code = mmap.mmap(-1, 4096, prot=7)
        code.write(bytes.fromhex("b814000000cd80c3"))  # getpid by int 0x80
        return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))() > 0
    """,
    # -- memory and disk beyond the limits (512 MiB, 64 MiB written) ---------------------------------------------
    "memory in a file of memory": """
        import mmap
        fd = os.memfd_create("x"); os.ftruncate(fd, 700 << 20)
        m = mmap.mmap(fd, 700 << 20)
        for at in range(0, 700 << 20, 4096): m[at] = 1
        m.close(); time.sleep(0.5); return "700 MiB"
    """,
    "memory in SysV segments": """
        for i in range(12):
            segment = c.shmget(0, 64 << 20, 0o1600)
            if segment < 0: raise OSError(ctypes.get_errno(), "shmget")
            c.shmat.restype = ctypes.c_void_p
            at = c.shmat(segment, None, 0)
            ctypes.memset(at, 1, 64 << 20); c.shmdt(ctypes.c_void_p(at))
        time.sleep(0.5); return "768 MiB"
    """,
    "memory in shared memory": """
        for i in range(12):
            with open(f"/dev/shm/accelopt-{os.getpid()}-{i}", "wb") as file:
                os.unlink(file.name)
                file.truncate(64 << 20)
                import mmap
                m = mmap.mmap(file.fileno(), 64 << 20)
                for at in range(0, 64 << 20, 4096): m[at] = 1
                keep.append(m) if (keep := globals().setdefault("keep", [])) is not None else None
        time.sleep(0.5); return "768 MiB"
    """,
    "memory in socket buffers": """
        keep, total = globals().setdefault("keep", []), 0
        for _ in range(200):
            pair = socket.socketpair(); keep.append(pair); pair[0].setblocking(False)
            for end, option in ((pair[0], 7), (pair[1], 8)): end.setsockopt(socket.SOL_SOCKET, option, 64 << 20)
            try:
                while True: total += pair[0].send(bytes(1 << 16))
            except BlockingIOError: pass
        time.sleep(0.5); return total > 512 << 20
    """,
    "disk of children that nobody waits for": """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for i in range(40):
            fd = os.open(str(i), os.O_RDWR | os.O_CREAT)
            if os.fork() == 0:
                for _ in range(15): os.write(fd, bytes(1 << 20))
                os._exit(0)
            os.close(fd); time.sleep(0.01)
        return "600 MiB"
    """,
    "disk in files without a name": """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        keep = globals().setdefault("keep", [])
        for i in range(40):
            fd = os.open(str(i), os.O_RDWR | os.O_CREAT); os.unlink(str(i)); keep.append(fd)
            if os.fork() == 0:
                for _ in range(15): os.write(fd, bytes(1 << 20))
                os._exit(0)
            time.sleep(0.01)
        time.sleep(1); return "600 MiB"
    """,
    "disk in many files": """
        for i in range(20):
            with open(str(i), "wb") as file: os.posix_fallocate(file.fileno(), 0, 32 << 20)
        time.sleep(1.5); return "640 MiB"
    """,
}
