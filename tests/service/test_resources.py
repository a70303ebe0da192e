"""A host that cannot be made is reported to the person in words, in an editor as in a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accelopt_lsp.cli.failures import Exit, expected_failure
from accelopt_lsp.errors import UserError
from accelopt_lsp.resources import host_named
from accelopt_lsp.settings.load import load_settings


def test_a_host_that_cannot_be_made_is_an_error_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    from accelopt_profiling.hosts import ssh

    def refuse(*arguments: object) -> None:
        raise ValueError("lab has no address")

    monkeypatch.setattr(ssh, "SshHost", refuse)
    settings = load_settings(flags={"hosts.lab.ssh": "nobody@lab"})
    with pytest.raises(UserError, match=r"^lab has no address\.$") as raised:
        host_named(replace(settings, host="lab"), "lab")
    failure = expected_failure(raised.value)
    assert failure is not None
    assert failure.exit_code is Exit.WRONG_INPUT
