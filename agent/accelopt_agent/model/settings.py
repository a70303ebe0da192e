"""The settings of one model: its address, its limits and what it may be shown. The key is in none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: How much of a file a model is shown: all of it, or the kernel alone.
Share = Literal["file", "kernel"]

#: The address that stands for the models of the editor itself (``editor_models.py``).
EDITOR = "editor"


@dataclass(frozen=True)
class ModelSettings:
    """``base_url`` is the address of an OpenAI-compatible API, ``model`` the model's name there; the address ``EDITOR``
    stands for the editor's own models, which are named VENDOR/FAMILY.

    The key is read from the environment variable ``key_variable`` or, where that is not set, from the system keyring
    (service "accelopt", user ``base_url``); an address without a key is asked without one. Prices are per million
    tokens in any currency; without ``price_in`` and ``price_out`` no money is counted, and without ``price_cached``
    tokens out of the server's cache cost what the others cost. ``seconds`` bounds the wait for an answer and for each
    further piece of it, ``longest_seconds`` the whole answer, ``answer_tokens`` its length; ``attempts`` counts the
    tries of one call when the server is busy or out of reach, and ``patience_seconds`` is the longest pause that a
    busy server may ask for. ``share`` says what of the file the model is shown.
    """

    base_url: str
    model: str
    temperature: float | None = None
    key_variable: str = "ACCELOPT_MODEL_KEY"
    price_in: float | None = None
    price_out: float | None = None
    seconds: float = 120.0
    answer_tokens: int = 8192
    attempts: int = 3
    price_cached: float | None = None
    longest_seconds: float = 600.0
    patience_seconds: float = 60.0
    share: Share = "file"

    @property
    def of_editor(self) -> bool:
        """Return whether it is one of the editor's own models."""
        return self.base_url == EDITOR

    def money(self, tokens_in: int, tokens_out: int, tokens_cached: int = 0) -> float | None:
        """Return the price of one call, of whose ``tokens_in`` the server had ``tokens_cached``; None without
        prices."""
        if self.price_in is None or self.price_out is None:
            return None
        cached = min(tokens_cached, tokens_in)
        cheap = self.price_in if self.price_cached is None else self.price_cached
        return ((tokens_in - cached) * self.price_in + cached * cheap + tokens_out * self.price_out) / 1e6
