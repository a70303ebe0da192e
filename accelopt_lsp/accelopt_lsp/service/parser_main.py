"""Answer requests of ``parser.py`` in a child process, from standard input until it ends."""

from __future__ import annotations

import json
import logging
import os
import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from accelopt_lsp.service.cache_key import installed_packages
from accelopt_memory.connection import Connection
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.profile_cache import ProfileCache
from accelopt_profiling.content_key import content_key
from accelopt_profiling.examination import examine
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.plain import from_plain, to_plain

if TYPE_CHECKING:
    from accelopt_agent.suggestions.suggestion import Suggestion

log = logging.getLogger(__name__)


class KeptSuggestions:
    """The suggestions that were asked about: each is sent once, then named by its id."""

    def __init__(self) -> None:
        self._by_id: dict[str, Suggestion] = {}

    def of(self, request: dict[str, Any]) -> Suggestion:
        """Return the suggestion of a request; one that comes ``alone`` is all that is kept."""
        from accelopt_agent.suggestions.suggestion import Suggestion

        if request["alone"]:
            self._by_id.clear()
        sent = request["suggestion"]
        if isinstance(sent, str):
            return self._by_id[sent]
        suggestion = from_plain(Suggestion, sent)
        self._by_id[suggestion.id] = suggestion
        return suggestion


class StoredProfiles:
    """Reads stored profiles, from databases that stay open."""

    def __init__(self) -> None:
        self._open: dict[Path, Connection] = {}

    def get(self, database: Path, key: str) -> Any | None:
        """Return the plain profile under ``key``; None where there is none, or the database cannot be used: the service
        opens it too, and tells the person."""
        try:
            if database not in self._open:
                if not os.path.exists(database):  # or out of reach
                    return None  # the service creates it, or tells why not
                self._open[database] = Connection(database)
            return ProfileCache(self._open[database]).get(key)
        except (MemoryUnavailableError, ValueError) as error:
            log.warning("no stored profile is read from %s: %s", database, error)
            if (connection := self._open.pop(database, None)) is not None:
                connection.close()
            return None


def answer(request: dict[str, Any], profiles: StoredProfiles, suggestions: KeptSuggestions) -> Any:
    if request["do"] == "find":
        return to_plain(replace(find_kernels(request["text"]), text=""))  # who asks has the text
    if request["do"] == "examine":
        root = Path(request["root"]) if request["root"] else None
        path = Path(request["path"])
        file = examine(path, request["text"], project_root=root, problem=request["problem"])
        key = content_key("profile", file, [request["conditions"], installed_packages(request["python"])])
        return {
            "file": to_plain(replace(file, text="")),
            "key": key,
            "stored": profiles.get(Path(request["database"]), key),
        }
    from accelopt_agent.suggestions.apply import edits_for, holds
    from accelopt_agent.suggestions.text_edit import ApplyRefusal

    suggestion = suggestions.of(request)
    if request["do"] == "holds":
        return holds(request["text"], suggestion.base_text, suggestion.text)
    edits = edits_for(request["text"], suggestion)
    return {"refused": edits.reason} if isinstance(edits, ApplyRefusal) else {"edits": to_plain(edits)}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    profiles, suggestions = StoredProfiles(), KeptSuggestions()
    while len(head := requests.read(4)) == 4:
        request = json.loads(requests.read(struct.unpack(">I", head)[0]))
        try:
            result = {"answer": answer(request, profiles, suggestions)}
        except Exception as error:
            result = {"raised": f"{type(error).__name__}: {error}"}
        body = json.dumps(result).encode()
        answers.write(struct.pack(">I", len(body)) + body)
        answers.flush()


def main() -> None:
    protocol = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # warnings of the parser and stray prints go to the log
    serve(sys.stdin.buffer, protocol)


if __name__ == "__main__":
    main()
