"""Pack the worker program as one zip archive, with the lines of Python that start it on a host."""

from __future__ import annotations

import base64
import io
import zipfile
from functools import cache
from pathlib import Path

import accelopt_profiling

_LEFT_OUT = {"__pycache__", "hosts"}

#: ``python -c`` looks for modules in the folder it is started in first: a project's, or a home with a ``random.py``.
NO_PLACE_TO_START_IN = "import sys; sys.path[:] = [p for p in sys.path if p]"

#: Runs under any Python, even one too old for the worker, so that it can say so. Reads "LENGTH\n" and the archive
#: from standard input, then serves.
BOOTSTRAP = f"""
{NO_PLACE_TO_START_IN}
""" + """
import json, os, tempfile
def refuse(why):
    body = json.dumps({'type': 'refused', 'message': why})
    os.write(1, ('@accelopt/1 %d\\n%s\\n' % (len(body), body)).encode())
    sys.exit(3)
if sys.version_info < (3, 10):
    refuse('its python3 is %d.%d; the worker needs 3.10 or newer (set hosts.NAME.python)' % sys.version_info[:2])
def read(n):
    data = b''
    while len(data) < n:
        part = os.read(0, min(1 << 16, n - len(data)))
        if not part: sys.exit(4)
        data += part
    return data
size = b''
while not size.endswith(b'\\n'): size += read(1)
archive = read(int(size))
try:
    space = os.path.exists('/proc/self/ns/pid') and os.stat('/proc/self/ns/pid').st_ino
    folder = tempfile.mkdtemp(prefix='accelopt-worker-%d-%d-' % (os.getpid(), space))
    path = os.path.join(folder, 'worker.zip')
    with open(path, 'wb') as f: f.write(archive)
except OSError as error:
    refuse('the worker could not be written to %s: %s' % (tempfile.gettempdir(), error))
del archive
sys.path.insert(0, path)
import shutil
try:
    from accelopt_profiling.worker.__main__ import main
    main()
finally:
    shutil.rmtree(folder, ignore_errors=True)
""".strip()


def bootstrap_line() -> str:
    """Return the bootstrap as one line without quotes, which any shell, C shells too, takes in single quotes."""
    text = base64.b64encode(BOOTSTRAP.encode()).decode()
    return f'{NO_PLACE_TO_START_IN}; import base64; exec(base64.b64decode("{text}"))'


@cache
def worker_archive() -> bytes:
    """Return ``accelopt_profiling`` without ``hosts`` as zip bytes. The same bytes for the same sources."""
    root = Path(accelopt_profiling.__file__).parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and path.suffix in (".py", ".json") and not _LEFT_OUT & set(relative.parts):
                info = zipfile.ZipInfo(f"accelopt_profiling/{relative.as_posix()}")
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, path.read_bytes())
    return buffer.getvalue()


def preamble() -> bytes:
    """Return what the bootstrap reads before it serves: the length and the archive."""
    archive = worker_archive()
    return f"{len(archive)}\n".encode() + archive
