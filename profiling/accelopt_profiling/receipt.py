"""Receipts: the evidence behind one number or verdict, enough to replay it, with an id made from the content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from accelopt_profiling.plain import to_plain


@dataclass(frozen=True)
class Receipt:
    """Evidence as plain data.

    ``kind`` is "profile" or "gate"; ``body`` holds sources, seeds, versions and outcomes.
    """

    kind: str
    body: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def body_text(self) -> str:
        """The body as canonical JSON, for the id and for who stores it."""
        return json.dumps(to_plain(self.body), sort_keys=True, separators=(",", ":"))

    @cached_property
    def id(self) -> str:
        """The first 16 hex digits of the SHA-256 of the canonical JSON."""
        text = f'{{"body":{self.body_text},"kind":{json.dumps(self.kind)}}}'
        return hashlib.sha256(text.encode()).hexdigest()[:16]
