"""Receipts: the evidence behind one number or verdict, enough to replay it, with an id made from the content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.plain import to_plain


@dataclass(frozen=True)
class Receipt:
    """Evidence as plain data.

    ``kind`` is "profile" or "gate"; ``body`` holds sources, seeds, versions and outcomes.
    """

    kind: str
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The first 16 hex digits of the SHA-256 of the canonical JSON."""
        text = json.dumps(to_plain(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]
