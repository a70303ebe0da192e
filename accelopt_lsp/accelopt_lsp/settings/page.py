"""Generates the page docs/reference/settings.md from the schema.

python -m accelopt_lsp.settings.page > docs/reference/settings.md
"""

from __future__ import annotations

import json
import sys

from accelopt_lsp.settings.schema import Setting, all_settings, environment_only

_HEAD = """# Settings

<!-- Written by `python -m accelopt_lsp.settings.page`; a test keeps it equal to the schema. -->

Each layer goes over the one before:

1. the defaults below,
2. your file: `accelopt.toml` in your configuration folder (`accelopt doctor` prints where; `ACCELOPT_CONFIG` names
   another),
3. the project's: the nearest `accelopt.toml`, or `[tool.accelopt]` in `pyproject.toml`, from the kernel's folder up
   to the root of its repository,
4. `ACCELOPT_*` in the environment,
5. the command line's flag, or the editor's `accelopt.*` (in camel case where the editor likes it:
   `accelopt.model.baseUrl`).

A setting that is wrong is reported once, with the layer it stands in, and the layer below it is used. No file holds a
key: one that looks like it does is refused. In a workspace that the editor does not trust, settings marked *trusted
only* are not taken from the project or the editor, and nothing of the workspace is run.

```toml
# accelopt.toml
host = "lab"
problem = { "softmax.py" = "softmax_problem.py" }

[target]
nki = "trn2"

[hosts.lab]
ssh = "me@gpu-box"
python = "/opt/venv/bin/python"
```

| setting | type | default | environment | |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page, as Markdown."""
    rows = [_row(setting) for setting in all_settings().values()]
    others = [f"| `{name}` | {about} |" for name, about in environment_only().items()]
    return (
        _HEAD
        + "\n".join(rows)
        + "\n\nVariables that are no setting:\n\n| variable | |\n|---|---|\n"
        + "\n".join(others)
        + "\n"
    )


def _row(setting: Setting) -> str:
    default = "" if setting.default in (None, "", {}) else f"`{json.dumps(setting.default)}`"
    variable = f"`{setting.variable}`" if setting.variable else ""
    kind = {"problem": "path or table"}.get(setting.type, setting.type)
    about = setting.about
    if setting.choices:
        about += " One of " + ", ".join(f"`{choice}`" for choice in setting.choices) + "."
    if setting.minimum is not None and setting.maximum is not None:
        about += f" From {setting.minimum:g} to {setting.maximum:.15g}."
    if setting.sensitive:
        about += " *Trusted only.*"
    return f"| `{setting.name}` | {kind} | {default} | {variable} | {about} Example: `{setting.example}` |"


if __name__ == "__main__":
    sys.stdout.write(page())
