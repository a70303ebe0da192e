"""Records consent to sending code to a model, per workspace, address and key."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from accelopt_agent.model.settings import EDITOR, ModelSettings, Share
from accelopt_memory.whole_file import whole_file

_SENT = {
    "file": ["the whole file that holds the kernel, and the file of its problem"],
    "kernel": ["the kernel's own lines, without the rest of the file"],
}
_ALWAYS = [
    "a digest of its measured and estimated cost, and the error of a rewrite that failed",
    "one-line summaries of rewrites that were tried, and rewrites of this kernel made on the way",
    "of accepted and failed rewrites of like kernels in the memory: a line with time and counters each, and a few "
    "lines of difference of those whose file is in the same folder",
]


@dataclass(frozen=True)
class Consent:
    """Permits sending kernels below the folder ``workspace`` to ``address``, as much of their files as ``share``
    says, and with them the key in the environment variable ``key`` ("": none)."""

    workspace: str
    address: str
    share: Share
    key: str = ""

    def covers(self, other: Consent) -> bool:
        same = (self.workspace, self.address) == (other.workspace, other.address) and other.key in (
            "",
            self.key,
        )
        return same and (self.share == "file" or other.share == "kernel")


def required_consent(
    settings: ModelSettings, workspace: Path, environ: Mapping[str, str] | None = None
) -> Consent:
    """Return the consent that querying this model about the files of ``workspace`` needs."""
    key = sent_variable(settings, os.environ if environ is None else environ)
    return Consent(str(workspace.resolve()), address_of(settings.base_url), settings.share, key)


def sent_variable(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    """Return the environment variable whose value is sent to the model's address as its key; "" where none is.

    A key of the system keyring is kept for one address, so it needs no name here.
    """
    held = not settings.of_editor and environ.get(settings.key_variable, "").strip()
    return settings.key_variable if held else ""


def address_of(base_url: str) -> str:
    """Return scheme, host and port of an API's address, without user, password and path."""
    if base_url == EDITOR:
        return "the models of the editor"
    parts = urlsplit(base_url)
    port = f":{parts.port}" if parts.port else ""
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def is_loopback(base_url: str) -> bool:
    """Return whether the address is this machine's loopback, so that nothing leaves the machine."""
    host = urlsplit(base_url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_readable_on_the_way(base_url: str) -> bool:
    """Return whether others on the network could read what is sent to the address."""
    return urlsplit(base_url).scheme.lower() == "http" and not is_loopback(base_url)


def what_is_sent(share: Share, key: str = "") -> list[str]:
    """Describe the content of a request to a model, as lines for a person; ``key`` is as in ``Consent``."""
    return [*_SENT[share], *_ALWAYS, *([f"the key in {key}"] if key else [])]


def default_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the consent file: in the user's data folder, or where ``ACCELOPT_CONSENTS`` says. No
    project's setting can change it."""
    override = (os.environ if environ is None else environ).get("ACCELOPT_CONSENTS", "").strip()
    if override:
        return Path(override).expanduser().absolute()
    import platformdirs

    return platformdirs.user_data_path("accelopt", appauthor=False) / "model_consents.json"


class ConsentStore:
    """The consents in the file ``path``. A file that cannot be read holds none."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()

    def all(self) -> list[Consent]:
        try:
            entries: Any = json.loads(self.path.read_text("utf-8"))["agreed"]
            return [
                Consent(str(e["workspace"]), str(e["address"]), _share(e["share"]), str(e.get("key", "")))
                for e in entries
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []

    def missing(self, settings: ModelSettings, workspace: Path) -> str | None:
        """Explain in one line why this model may not be queried about the files of ``workspace``; None if it may."""
        consent = required_consent(settings, workspace)
        if is_loopback(settings.base_url) and not consent.key:
            return None
        if any(agreement.covers(consent) for agreement in self.all()):
            return None
        what = f"the key in {consent.key} and code" if consent.key else "code"
        return (
            f"The model {settings.model} is not asked: nobody agreed that {what} below {consent.workspace} is sent to "
            f"{consent.address}. `accelopt model` shows what would be sent, `accelopt model agree` agrees."
        )

    def give(self, agreement: Consent) -> None:
        """Store the consent, in place of another for the same workspace and address. Raises OSError."""
        self._write([*self._others(agreement), agreement])

    def withdraw(self, agreement: Consent) -> bool:
        """Delete the consent for this workspace and address. False when there was none. Raises OSError."""
        others = self._others(agreement)
        if len(others) == len(self.all()):
            return False
        self._write(others)
        return True

    def _others(self, agreement: Consent) -> list[Consent]:
        same = (agreement.workspace, agreement.address)
        return [other for other in self.all() if (other.workspace, other.address) != same]

    def _write(self, agreements: list[Consent]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self.path) as file:
            json.dump({"agreed": [asdict(a) for a in agreements]}, file, indent=2)


def _share(value: Any) -> Share:
    if value == "file":
        return "file"
    if value == "kernel":
        return "kernel"
    raise ValueError(f"{value!r} is no way to share")
