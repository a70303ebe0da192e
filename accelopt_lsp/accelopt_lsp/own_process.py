"""Build the commands that start parts of this program: whatever folder it is in, no file of that folder is imported.

``python -m`` and ``python -c`` look for modules in the current folder first, which is the person's workspace.
"""

from __future__ import annotations

import sys

#: As in ``accelopt_profiling.hosts.archive``, which would take 30 ms to import before the server's first answer.
_NOT_FROM_HERE = "import sys; sys.path[:] = [p for p in sys.path if p]"


def own_process(module: str) -> tuple[str, ...]:
    """Return the command that runs ``main`` of a module of this program; arguments may follow."""
    return (sys.executable, "-c", f"{_NOT_FROM_HERE}; from {module} import main; main()")
