"""Looks up a model's key: in the environment or the system keyring.

An editor passes a key from its secret storage to the process it starts, as the environment variable
``ModelSettings.key_variable``. No key is part of any settings, and children that run kernels get none of these
variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from accelopt_agent.model.settings import ModelSettings

#: The service name under which keys are kept in the system keyring.
KEYRING_SERVICE = "accelopt"

_HIDDEN = "(key)"


def api_key(settings: ModelSettings, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the key for the settings' address, from the environment or the system keyring; None where there
    is none."""
    key = (os.environ if environ is None else environ).get(settings.key_variable, "").strip()
    return key or _from_keyring(settings.base_url)


def keep_key(base_url: str, key: str) -> bool:
    """Keep ``key`` for ``base_url`` in the system keyring. False where this system has none."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return False
    try:
        keyring.set_password(KEYRING_SERVICE, base_url, key)
    except KeyringError:
        return False
    return True


def _from_keyring(user: str) -> str | None:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return None
    try:
        key: str | None = keyring.get_password(KEYRING_SERVICE, user)
    except KeyringError:
        return None
    return key


def without_key(text: str, key: str | None) -> str:
    """Return ``text`` as one line of at most 160 characters in which the key does not stand: a server may repeat it."""
    if key:
        text = text.replace(key, _HIDDEN)
    text = " ".join(re.sub(r"\b(sk|key)-[\w*.-]{8,}", _HIDDEN, text).split())
    text = "".join(character for character in text if character.isprintable())
    return text if len(text) <= 160 else text[:157] + "..."
