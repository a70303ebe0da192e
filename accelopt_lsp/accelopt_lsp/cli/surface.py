"""Be what a service of the command line speaks to."""

from __future__ import annotations

from accelopt_lsp.errors import HostUnavailableError
from accelopt_lsp.service.protocol import Surface
from accelopt_lsp.stderr import say


class Terminal(Surface):
    """Says what a service has to say on standard error."""

    def host_problem(self, reason: str | None) -> None:
        """End the command: who names a host wants that one."""
        if reason is not None:
            raise HostUnavailableError(reason)

    def memory_problem(self, reason: str) -> None:
        say(f"Nothing of this will be remembered. {reason}")

    def isolation_problem(self, line: str) -> None:
        say(line)
