"""Build the commands that start parts of this program: whatever folder it is in, no file of that folder is imported.

``python -m`` and ``python -c`` look for modules in the current folder first, which is the person's workspace.
"""

from __future__ import annotations

import sys

#: As in ``accelopt_profiling.hosts.archive``, which would take 30 ms to import before the server's first answer.
_NOT_FROM_HERE = "import sys; sys.path[:] = [p for p in sys.path if p]"


def own_process(module: str, niceness: int = 0) -> tuple[str, ...]:
    """Return the command that runs ``main`` of a module of this program; arguments may follow. The process gives way by
    ``niceness`` from its first import on."""
    gives_way = f"; import os; os.nice({niceness})" if niceness else ""
    return (sys.executable, "-c", f"{_NOT_FROM_HERE}{gives_way}; from {module} import main; main()")


#: The editor and the server that answers it come first: on 2 cores, 99 % of its answers take 7 ms while the
#: service and the kernels that it runs have nothing else beside them, and 10 ms with a niceness of 5.
SERVICE = (*own_process("accelopt_lsp.service.process_main", niceness=15), "editor")
#: The same for a coding agent: it lends no models, and whoever names a host wants that one.
SERVICE_OF_COMMANDS = own_process("accelopt_lsp.service.process_main")
PARSER = own_process("accelopt_lsp.service.parser_main")
