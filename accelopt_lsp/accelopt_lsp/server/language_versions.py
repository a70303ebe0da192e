"""Know the versions of NKI and Triton that hold for each file, and what a type checker finds of them there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from accelopt_lsp.language.nki_names import newest
from accelopt_lsp.language.stub_files import FOLDER
from accelopt_lsp.language.vocabulary import LanguageVersions
from accelopt_lsp.server.configuration import SettingsCache
from accelopt_lsp.service.cache_key import installed_packages
from accelopt_lsp.settings.load import Settings
from accelopt_profiling.nki.current.versions import UnknownVersionError, emulated_version
from accelopt_profiling.nki.operations.table import table
from accelopt_profiling.triton_adapter.versions import minor_version


class LanguageVersionsCache:
    """The versions of each file, by its interpreter and project; read from names of folders, nothing is run."""

    def __init__(self, configuration: SettingsCache) -> None:
        self._configuration = configuration
        self._known: dict[tuple[str, Path | None], LanguageVersions] = {}

    def cached(self, path: str) -> LanguageVersions:
        """Return the versions of a file if it was read already, else the newest NKI and no Triton."""
        return self.known(path) or LanguageVersions()

    def known(self, path: str) -> LanguageVersions | None:
        """Return the versions of a file, None until it was read."""
        settings = self._configuration.cached(path)
        return self._known.get(_key(settings)) if settings is not None else None

    async def read(self, settings: Settings) -> LanguageVersions:
        """Look at what is there now, for the files that these settings hold for."""
        versions = await asyncio.to_thread(_look, *_key(settings))
        self._known[_key(settings)] = versions
        return versions


def _key(settings: Settings) -> tuple[str, Path | None]:
    """A host's packages are not looked at: of a file that runs on one no version is known."""
    return settings.interpreter.path if settings.host == "local" else "", settings.project_root


def _look(python: str, root: Path | None) -> LanguageVersions:
    try:
        names = installed_packages(python)
    except OSError:
        names = []
    matches = (re.match(r"([A-Za-z_]+)-(\d[^-]*?)\.(?:dist|egg)-info$", name) for name in names)
    versions = {match[1].lower(): match[2] for match in matches if match}
    triton = minor_version(versions["triton"]) if "triton" in versions else None
    installed = ".".join(map(str, minor_version(versions.get("nki", ""))))
    is_real = installed in table()["versions"]  # on PyPI that name is a placeholder
    typed = {"triton"} if triton else set()
    typed |= {"nki"} if is_real else set()
    for package in ("nki", "neuronxcc"):
        if root is not None and (root / FOLDER / package / "__init__.pyi").is_file():
            typed.add(package)
    try:
        nki = installed if is_real else emulated_version()
    except UnknownVersionError:
        nki = newest()
    return LanguageVersions(nki, triton, frozenset(typed))
