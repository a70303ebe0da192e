"""The parts of the reference that follow from the code: commands, actions, settings, rules, findings, NKI and probes.

``docs/conf.py`` joins them to the pages of the same names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path, PurePath

import click

from accelopt_agent.rules.catalogue import Rule, rules
from accelopt_lsp.actions import ACTIONS
from accelopt_lsp.cli.main import accelopt
from accelopt_lsp.language.operation_text import facts
from accelopt_lsp.settings.schema import Setting, all_settings, environment_only
from accelopt_profiling.gate.probes.registry import PROBES
from accelopt_profiling.gate.probes.text import TEXT_PROBES
from accelopt_profiling.nki.operations.table import Operation, operations
from accelopt_profiling.problems.catalogue import LAYOUTS
from accelopt_profiling.problems.layout import SCALE, ProblemLayout


def commands() -> str:
    """The help text of every command and subcommand."""
    return "\n".join(_help(accelopt, "accelopt", None))


def _help(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name.split()[-1], **command.context_settings)
    context.terminal_width = 100
    yield f"## {name}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            subcommand = command.get_command(context, child)
            if subcommand is not None:
                yield from _help(subcommand, f"{name} {child}", context)


def settings() -> str:
    """A table of all settings and one of the variables that are not settings."""
    lines = ["| setting | type | default | environment | |", "|---|---|---|---|---|"]
    lines += [_setting(setting) for setting in all_settings().values()]
    lines += ["", "Environment variables that are not settings:", "", "| variable | |", "|---|---|"]
    lines += [f"| `{name}` | {about} |" for name, about in environment_only().items()]
    return "\n".join(lines) + "\n"


def _setting(setting: Setting) -> str:
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


def catalogue() -> str:
    """Each rewrite rule with when it applies and which counters it moves."""
    parts: list[str] = []
    for dialect, heading in {"nki": "NKI", "triton": "Triton"}.items():
        of_dialect = [rule for rule in rules() if rule.dialect == dialect]
        parts.append(f"## {heading}\n\n{len(of_dialect)} rules.\n")
        parts += [_rule(rule) for rule in of_dialect]
    return "\n".join(parts)


def _rule(rule: Rule) -> str:
    moves = ", ".join(f"{counter.replace('_', ' ')} {way}" for counter, way in rule.moves.items())
    packages = " and ".join(f"`{package}`" for package in rule.packages)
    where = f"- Rewrites kernels of: {packages}\n" if packages else ""
    names = " and ".join(rule.after)
    after = f"- Also proposed together with: {names}, as one change\n" if names else ""
    return f"""### {rule.name}

{rule.title}.

{where}- Applies when: {rule.applies}
{after}- Should change: {moves}
- Helps kernels bound by: {", ".join(rule.helps)}
- Why: {rule.source}
"""


def findings() -> str:
    """The page of each finding, grouped by what the finding is about."""
    pages = files("accelopt_lsp").joinpath("pages")
    codes = json.loads(files("accelopt_profiling").joinpath("findings.json").read_text(encoding="utf-8"))
    parts: list[str] = []
    group = ""
    for code, entry in sorted(codes.items(), key=lambda item: _GROUPS.index(item[1]["about"])):
        if entry["about"] != group:
            group = entry["about"]
            parts.append(f"## About the {group}\n")
        page = pages.joinpath(f"{code}.md").read_text(encoding="utf-8")
        text = re.sub(r"\A# .*\n\n`.*`\n\n", "", page)
        parts.append(f"### `{code}`: {entry['title'][0].lower()}{entry['title'][1:]}\n\n{text}")
    return "\n".join(parts)


def problems() -> str:
    """Each layout of problems in the order in which it is looked for, with an example."""
    layouts = [layout for layout in LAYOUTS if layout.find is not None]
    lines = ["| layout | kind | a Python file with | a reference of its own |", "|---|---|---|---|"]
    for layout in layouts:
        names = ", ".join(f"`{name}`" for name in (*layout.names, *([layout.entry] if layout.entry else [])))
        lines.append(
            f"| {layout.title} | `{layout.kind}` | {names} | {'yes' if layout.referenced else 'no'} |"
        )
    kernel = f"Examples share these lines of the kernel file `k.py`:\n\n```python\n{SCALE}```\n"
    return "\n".join(["\n".join(lines), "", kernel, *map(_layout, layouts)])


def _layout(layout: ProblemLayout) -> str:
    parts = [f"## {layout.title}\n\n{layout.about}\n"]
    for file, text in layout.example.items():
        rest = text.removeprefix(SCALE).strip("\n")
        language = {".py": "python", ".json": "json", ".jsonl": "json", ".yml": "yaml"}[PurePath(file).suffix]
        if rest:
            parts.append(f"`{file}`:\n\n```{language}\n{rest}\n```\n")
    return "\n".join(parts)


def nki() -> str:
    """Every function of NKI that the emulator knows, from ``operations.json``."""
    parts: list[str] = []
    for module, heading in {"nisa": "nisa: instructions", "nl": "nl: the language"}.items():
        parts.append(f"## {heading}\n")
        parts += [_function(row) for row in operations().values() if row.name.startswith(f"{module}.")]
    return "\n".join(parts)


def _function(row: Operation) -> str:
    forms = {"beta1": "Beta 1", "current": "today"}
    lines = [f"- {forms[d]}: `{row.short}{signature}`" for d, signature in row.signatures.items()]
    lines += [f"- as an `op` alone: {forms[dialect]}" for dialect in row.tokens]
    lines += [f"- {name}: {f'`{text}`' if name == 'example' else text}" for name, text in facts(row).items()]
    listed = "\n".join(lines)
    return f"### {row.name}\n\n{row.about}.\n\n{listed}\n"


def actions() -> str:
    """The server's commands and the code actions, from ``actions.json``."""
    lines = [
        "## Table of commands",
        "",
        "| command | argument | does | as `accelopt ...` |",
        "|---|---|---|---|",
    ]
    for action in ACTIONS.values():
        fields = ", ".join(
            f'"{name.rstrip("?")}"{name[len(name.rstrip("?")) :]}' for name in action.arguments
        )
        same = f"`{action.command_line}`" if action.command_line else ""
        lines.append(f"| `{action.command}` | `{{{fields}}}` | {action.does} | {same} |")
    lines += [
        "",
        "## Table of code actions",
        "",
        "| kind | title | | for the findings |",
        "|---|---|---|---|",
    ]
    for action in ACTIONS.values():
        for offer in action.offers.values():
            title = re.sub(r"\{(\w+)\}", lambda word: word[1].upper(), offer.title)
            codes = ", ".join(f"`{code}`" for code in offer.fixes)
            lines.append(f"| `{offer.kind}` | `{title}` | {offer.note} | {codes} |")
    return "\n".join(lines) + "\n"


_GROUPS = ("file", "problem", "run", "correctness", "cost", "settings", "host")

#: Of a probe that catches nothing alone, the share of a check that it may cost before it is named.
_IDLE_SHARE = 5.0


def probes() -> str:
    """The gate's probes: what each catches and costs, and the attacks of the corpus that no other one refuses."""
    measured = json.loads(PROBE_FIGURES.read_text(encoding="utf-8"))
    attacks: dict[str, list[str]] = measured["attacks"]
    lines = ["| probe | catches | attacks refused | by it alone | cost, % |", "|---|---|---|---|---|"]
    idle: list[str] = []
    for name, catches in {**{probe.name: probe.catches for probe in PROBES}, **TEXT_PROBES}.items():
        share = 100 * measured["shares"].get(name, 0.0)
        alone = [case for case, refusing in attacks.items() if refusing == [name]]
        refused = sum(name in refusing for refusing in attacks.values())
        lines.append(f"| {name} | {catches} | {refused} | {len(alone)} | {share:.1f} |")
        if not alone and share > _IDLE_SHARE:
            idle.append(f"{name} ({share:.1f} %)")
    lines += [
        "",
        f"Measured on {len(attacks)} attacks and {measured['controls']} honest controls, {measured['date']}, "
        f"{measured['commit']}, {measured['machine']}. A check of a control takes {measured['seconds']:.2f} s of "
        "processor time (median), of which the rows say the mean share; what is in no row is the start of processes, "
        "planning and the original.",
        "",
        f"Above {_IDLE_SHARE:g} % of a check without an attack of their own: {', '.join(idle) or 'none'}.",
        "",
        "## Attacks that one probe alone refuses",
        "",
    ]
    for name in dict.fromkeys(refusing[0] for refusing in attacks.values() if len(refusing) == 1):
        cases = sorted(case for case, refusing in attacks.items() if refusing == [name])
        lines.append(f"- **{name}**: {', '.join(f'`{case}`' for case in cases)}")
    return "\n".join(lines) + "\n"


#: What ``accelopt bench gate --run-alone --probes`` wrote.
PROBE_FIGURES = Path(__file__).parents[1] / "docs/results/gate-probes.json"

#: The pages of the documentation that end with what the code generates.
PAGES: dict[str, Callable[[], str]] = {
    "reference/cli": commands,
    "reference/lsp": actions,
    "reference/nki": nki,
    "reference/settings": settings,
    "reference/rules": catalogue,
    "reference/findings": findings,
    "reference/problems": problems,
    "reference/probes": probes,
}
