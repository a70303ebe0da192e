"""The status says when kernels are not isolated completely."""

from __future__ import annotations

from accelopt_lsp.server.status import StatusLine


def test_an_incomplete_sandbox_stands_in_the_status() -> None:
    sent = []
    status = StatusLine(sent.append)
    status.update([])
    status.isolation = "local: kernels are not isolated completely: no user namespaces here."
    status.update([])
    assert [one["state"] for one in sent] == ["idle", "idle"]
    assert sent[0]["message"] == "Ready"
    assert "not isolated completely" in sent[1]["message"]
    assert "no user namespaces" in sent[1]["detail"]
