"""Masks what an export must not carry to other machines: absolute paths, and what looks like a secret."""

from __future__ import annotations

import re
from typing import Any

SECRET = "<secret>"

#: A quoted text behind a name that promises a secret, and what a variable of the environment of such a name is set to.
#: A kernel's ``num_tokens=batch_size`` is neither.
_QUOTED = re.compile(
    r"""(?ix) (\b[\w.-]* (?:api_?key|access_?key|token|secret|password|passwd|credential) ["']? \s* [:=] \s* ["'])
    ([^"'\s]{6,}) (?=["'])"""
)
_VARIABLE = re.compile(
    r"""(?x) (\b[A-Z0-9_]* (?:API_?KEY|ACCESS_?KEY|TOKEN|SECRET|PASSWORD) ["']? \s* [:=] \s*)
    (?=[\w+/.~-]*\d) ([\w+/.~-]{12,} =*)"""
)
#: The forms in which well-known services issue tokens, and private keys.
_FORMS = re.compile(
    r"""(?x) \b (?: sk-[A-Za-z0-9_-]{16,} | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
    | hf_[A-Za-z0-9]{16,} | xox[abprs]-[\w-]{10,} | (?:AKIA|ASIA)[A-Z0-9]{16} | AIza[\w-]{30,}
    | eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,} )
    | (?s:-----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*-----|\Z))"""
)
#: A name and a password in an address.
_IN_ADDRESS = re.compile(r"(\w+://)[^/\s:@]+:[^/\s@]+@")
#: An absolute path, of which the last name stays. A root alone, or a division, is none.
_PATH = re.compile(
    r"""(?x) (?<![\w./\\:<]) (?: file:// )? (?: [A-Za-z]:[\\/]+ | ~[\w.-]*/ | /(?=[\w.@-]+/) )
    (?: [\w.@+ -]+? [\\/]+ )* ([\w.@+-]+)"""
)


def masked_text(text: str) -> str:
    """Return ``text`` with secrets replaced and of each absolute path only its last name."""
    return _PATH.sub(r"\1", _without_secrets(text))


def holds_secret(text: str) -> bool:
    """Return whether something in ``text`` looks like a secret."""
    return _without_secrets(text) != text


def _without_secrets(text: str) -> str:
    text = _IN_ADDRESS.sub(rf"\1{SECRET}@", _FORMS.sub(SECRET, text))
    return _VARIABLE.sub(rf"\1{SECRET}", _QUOTED.sub(rf"\1{SECRET}", text))


def masked(data: Any) -> Any:
    """Return plain data with every text in it masked, names of fields included."""
    if isinstance(data, str):
        return masked_text(data)
    if isinstance(data, dict):
        return {masked_text(str(name)): masked(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [masked(value) for value in data]
    return data
