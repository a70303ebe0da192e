"""How this program starts parts of itself: whatever folder it is in, no file of that folder is imported.

``python -m`` and ``python -c`` look for modules in the current folder first, which is the person's workspace.
"""

from __future__ import annotations

import sys

from accelopt_profiling.hosts.archive import NO_PLACE_TO_START_IN


def own_process(module: str) -> tuple[str, ...]:
    """The command that runs ``main`` of a module of this program; arguments may follow."""
    return (sys.executable, "-c", f"{NO_PLACE_TO_START_IN}; from {module} import main; main()")
