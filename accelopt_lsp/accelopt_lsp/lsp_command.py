"""Run the console script ``accelopt-lsp``: the language server, for the configuration of an editor.

Without options it starts the server directly: the command line's own imports would take a tenth of a second before the
server's first answer.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    if sys.argv[1:] in ([], ["--stdio"]):
        from accelopt_lsp.server.main import start

        start()
        sys.exit(0)
    from accelopt_lsp.cli.main import lsp_main

    lsp_main()


if __name__ == "__main__":
    main()
