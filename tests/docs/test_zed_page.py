"""Zed's extension names the server that its page configures."""

from __future__ import annotations

import json
import re
import sys

from support.installation import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_the_page_and_the_extension_name_one_server_and_program() -> None:
    extension = tomllib.loads((ROOT / "editors/zed/extension.toml").read_text("utf-8"))
    cargo = tomllib.loads((ROOT / "editors/zed/Cargo.toml").read_text("utf-8"))
    ((server, described),) = extension["language_servers"].items()
    assert (extension["schema_version"], described["languages"]) == (1, ["Python"])
    assert cargo["lib"]["crate-type"] == ["cdylib"]
    page = (ROOT / "docs/how-to/zed.md").read_text("utf-8")
    (block,) = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    settings = json.loads(block)
    assert settings["languages"]["Python"]["language_servers"] == [server, "..."]
    (program,) = re.findall(r'PROGRAM: &str = "(.*)"', (ROOT / "editors/zed/src/lib.rs").read_text("utf-8"))
    assert settings["lsp"][server]["binary"]["path"].endswith(f"/{program}")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert program in scripts
