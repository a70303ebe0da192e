"""LSP types that are built when they are first used are those that lsprotocol builds at once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import attrs
import pytest
from lsprotocol import types as t

from accelopt_lsp.server.server import message_converter

LATER = """
import json, sys
from accelopt_lsp.server.lsp_types import import_lsp_types
import_lsp_types()
from lsprotocol import types as t
"""

SHOW = """
def shown(types):
    import attrs, re
    return {
        name: [repr((f.name, f.type, f.default, f.kw_only, f.init, f.eq, re.sub(' at 0x.*', '', repr(f.validator))))
               for f in attrs.fields(cls)]
        for name, cls in types.ALL_TYPES_MAP.items() if isinstance(cls, type) and attrs.has(cls)
    }
"""


def later(code: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", LATER + code], capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_every_type_has_the_same_fields() -> None:
    message_converter()  # resolves the names in the types' annotations
    here: dict[str, Any] = {}
    exec(SHOW, here)  # noqa: S102
    assert later(SHOW + "print(json.dumps(shown(t)))") == here["shown"](t)


def test_nothing_is_built_that_is_not_used_and_messages_read_the_same() -> None:
    action = {
        "title": "Optimize",
        "kind": "refactor.rewrite",
        "command": {
            "title": "go",
            "command": "accelopt.server.optimize",
            "arguments": [{"uri": "file:///k.py"}],
        },
        "edit": {"documentChanges": [{"textDocument": {"uri": "file:///k.py", "version": 3}, "edits": []}]},
    }
    code = f"""
from accelopt_lsp.server.server import message_converter
converter = message_converter()
classes = [c for c in t.ALL_TYPES_MAP.values() if isinstance(c, type)]
unbuilt = sum('__init__' in vars(c) and not callable(vars(c)['__init__']) for c in classes)
action = converter.structure(json.loads({json.dumps(json.dumps(action))}), t.CodeAction)
same = action == t.CodeAction(action.title, kind=action.kind, command=action.command, edit=action.edit)
print(json.dumps([unbuilt, converter.unstructure(action), same]))
"""
    unbuilt, answer, same = later(code)
    assert unbuilt > 400
    assert same
    converter = message_converter()
    assert answer == json.loads(json.dumps(converter.unstructure(converter.structure(action, t.CodeAction))))
    assert attrs.has(t.CodeAction)
