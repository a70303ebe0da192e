"""Which model is asked, where, and with what key. The key itself is in none of these settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

#: The service name under which keys are kept in the system keyring.
KEYRING_SERVICE = "accelopt"


@dataclass(frozen=True)
class ModelSettings:
    """``base_url`` is the address of an OpenAI-compatible API, ``model`` the model's name there.

    The key is read from the environment variable ``key_variable`` or, where that is not set, from the system keyring
    (service "accelopt", user ``base_url``); an address without a key is asked without one. Prices are per million
    tokens in any currency; without both of them no money is counted. ``seconds`` bounds one answer, ``answer_tokens``
    its length; ``attempts`` counts the tries of one call when the server is busy or out of reach.
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

    def money(self, tokens_in: int, tokens_out: int) -> float | None:
        """The price of one call; None when no price is configured."""
        if self.price_in is None or self.price_out is None:
            return None
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6


def api_key(settings: ModelSettings, environ: Mapping[str, str] | None = None) -> str | None:
    """The key for the settings' address, from the environment or the system keyring; None where there is none."""
    found = (os.environ if environ is None else environ).get(settings.key_variable, "").strip()
    return found or _from_keyring(settings.base_url)


def _from_keyring(user: str) -> str | None:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return None
    try:
        found: str | None = keyring.get_password(KEYRING_SERVICE, user)
    except KeyringError:
        return None
    return found
