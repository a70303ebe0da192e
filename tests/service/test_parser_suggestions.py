"""A suggestion goes to the parser's process once; after that its id does."""

from __future__ import annotations

import difflib
from typing import Any

import pytest

from accelopt_agent.suggestions.suggestion import Speedup, Suggestion
from accelopt_agent.suggestions.text_edit import apply_to_text
from accelopt_lsp.service import parser
from accelopt_lsp.service.parser import ParserProcess
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known

BASE = "import triton\n\n@triton.jit\ndef k(x):\n    y = x + 1\n    y = y + 1\n"
FAST = BASE.replace("    y = x + 1\n    y = y + 1\n", "    y = x + 2\n")


def suggestion(number: int = 0) -> Suggestion:
    latency = Latency(10.0, 8.0, 12.0, Known.ESTIMATED)
    diff = "".join(difflib.unified_diff(BASE.splitlines(True), FAST.splitlines(True)))
    kernel = find_kernels(BASE).kernels[0]
    return Suggestion(
        f"s{number}", "r", "k.py", "k", "triton", kernel.content_hash, BASE, FAST, diff, "rule:x", "up",
        Speedup(2.0, 1.8, 2.2, Known.ESTIMATED), latency, latency, Verdict(True), "h100", "local",
    )  # fmt: skip


class Recorded(ParserProcess):
    """Notes what it sends of suggestions: "id" or "whole"."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def _exchange(self, request: dict[str, Any]) -> Any:
        self.sent.append("id" if isinstance(request["suggestion"], str) else "whole")
        return super()._exchange(request)


@pytest.mark.slow
async def test_a_suggestion_is_sent_once_to_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "SUGGESTIONS_KEPT", 2)
    process = Recorded()
    try:
        for _ in range(2):
            edits = await process.edits_for(BASE, suggestion())
            assert isinstance(edits, list)
            assert apply_to_text(BASE, edits) == FAST
        assert await process.holds(FAST, suggestion())
        assert not await process.holds(BASE, suggestion())
        assert process.sent == ["whole", "id", "id", "id"]

        process._child.kill()  # type: ignore[union-attr]
        process._child.wait()  # type: ignore[union-attr]
        assert await process.holds(FAST, suggestion())
        assert process.sent[4:] == ["whole"]

        for number in (1, 2, 0, 2):  # two are kept, then it begins anew
            assert await process.holds(FAST, suggestion(number))
        assert process.sent[5:] == ["whole", "whole", "whole", "id"]
    finally:
        process.close()
