"""Answer requests of ``parser.py`` in a child process, from standard input until it ends."""

from __future__ import annotations

import ast
import json
import os
import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from accelopt_profiling.examination import examine
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.plain import from_plain, to_plain


def answer(request: dict[str, Any]) -> Any:
    if request["do"] == "find":
        return to_plain(find_kernels(request["text"]))
    if request["do"] == "examine":
        root = Path(request["root"]) if request["root"] else None
        path = Path(request["path"])
        examined = examine(path, request["text"], project_root=root, problem=request["problem"])
        return to_plain(replace(examined, text=""))  # who asks has the text
    from accelopt_agent.suggestions.apply import ApplyRefusal, edits_for
    from accelopt_agent.suggestions.suggestion import Suggestion

    suggestion = from_plain(Suggestion, request["suggestion"])
    if request["do"] == "holds":
        return holds(request["text"], suggestion.base_text, suggestion.text)
    edits = edits_for(request["text"], suggestion)
    return {"refused": edits.reason} if isinstance(edits, ApplyRefusal) else {"edits": to_plain(edits)}


def holds(text: str, base: str, wanted: str) -> bool:
    """Return whether every function that differs between ``base`` and ``wanted`` reads in ``text`` as in
    ``wanted``."""
    from accelopt_agent.syntax.scopes import scopes_of

    try:
        now, old, new = (
            {scope.name: ast.dump(scope.node) for scope in scopes_of(ast.parse(source))}
            for source in (text, base, wanted)
        )
    except SyntaxError:
        return False
    changed = {name for name, _ in old.items() ^ new.items()}
    return bool(changed) and all(now.get(name) == new.get(name) for name in changed)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    while len(head := requests.read(4)) == 4:
        request = json.loads(requests.read(struct.unpack(">I", head)[0]))
        try:
            result = {"answer": answer(request)}
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
