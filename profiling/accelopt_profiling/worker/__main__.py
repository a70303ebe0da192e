"""``python -m accelopt_profiling.worker``: serve one client on standard input and output."""

from __future__ import annotations

import contextlib
import os

from accelopt_profiling.worker.supervisor import Supervisor


def main() -> None:
    with contextlib.suppress(PermissionError):  # it leads a session already
        os.setpgid(0, 0)  # what a terminal's Ctrl-C ends is the client, which then ends this
    # Keep the protocol's channel to ourselves: whatever else writes to descriptor 1 goes to standard error.
    channel = os.dup(1)
    os.dup2(2, 1)
    Supervisor(0, channel).serve()


if __name__ == "__main__":
    main()
