"""The configuration of Helix is TOML with the keys that Helix reads."""

from __future__ import annotations

import re
import sys

from support.installation import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_helix_runs_our_server_beside_the_others_and_shows_hints() -> None:
    text = (ROOT / "docs/how-to/helix.md").read_text("utf-8")
    languages, config = map(tomllib.loads, re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    (python,) = languages["language"]
    assert python["name"] == "python"
    assert {"accelopt", "ruff", "pyright"} == set(python["language-servers"])
    assert languages["language-server"]["accelopt"]["command"] == "accelopt-lsp"
    assert config["editor"]["lsp"]["display-inlay-hints"] is True
