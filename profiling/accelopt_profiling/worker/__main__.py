"""``python -m accelopt_profiling.worker``: serve one client on standard input and output."""

from __future__ import annotations

import contextlib
import fcntl
import os
import termios

from accelopt_profiling.worker.environment import restart_without_secrets


def main(restarted: bool = False) -> None:
    """Serve until the client ends. ``restarted`` tells that the environment was cleaned already."""
    if not restarted:
        restart_without_secrets()
    from accelopt_profiling.worker.frames import encode
    from accelopt_profiling.worker.supervisor import Supervisor  # not before: a restart would import it twice

    with contextlib.suppress(PermissionError):  # it leads a session already
        os.setpgid(0, 0)  # what a terminal's Ctrl-C ends is the client, which then ends this
    _leave_terminal()
    # Keep the protocol's channel to ourselves: whatever else writes to descriptor 1 goes to standard error.
    channel = os.dup(1)
    os.dup2(2, 1)
    try:
        supervisor = Supervisor(0, channel)
    except OSError as error:
        message = f"The worker got no folder for its jobs ({error}): make room there, or set TMPDIR to another folder."
        os.write(channel, encode({"type": "refused", "message": message}))
        return
    supervisor.serve()


def _leave_terminal() -> None:
    """Without a terminal of their own, steps cannot type into the one that the client was started in."""
    with contextlib.suppress(OSError):
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        try:
            fcntl.ioctl(terminal, termios.TIOCNOTTY)
        finally:
            os.close(terminal)


if __name__ == "__main__":
    main()
