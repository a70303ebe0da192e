"""Convert features, edits and positions to and from ``lsprotocol`` types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.workspace import PositionCodec

from accelopt_agent.suggestions.text_edit import TextEdit
from accelopt_lsp.actions import ACTIONS
from accelopt_lsp.features.code_actions import CodeAction
from accelopt_lsp.features.completion import Completion
from accelopt_lsp.features.diagnostics import Diagnostic
from accelopt_lsp.features.hints import Hint
from accelopt_lsp.features.lens import Lens
from accelopt_lsp.features.signature_help import SignatureHelp
from accelopt_lsp.server.client import Client
from accelopt_lsp.state.line_map import TextChange
from accelopt_profiling.measurement import Severity

SOURCE = "accelopt"

#: A command of the client that opens the diff of a suggestion (``{"id", "uri", "title"}``); where the client says
#: that it has it, choosing a suggestion shows it before anything is applied.
SHOW_SUGGESTION = "accelopt.showSuggestion"

#: A command of the client that lists the suggestions for a kernel (``{"uri", "kernel"}``) to choose one to look at.
SHOW_VERSIONS = "accelopt.showVersions"

#: A command of the client that lists what a kernel (``{"uri", "kernel"}``) costs on each target, to choose one, and
#: offers to profile it again; where the client lacks it, choosing a result profiles.
SHOW_COSTS = "accelopt.showCosts"

_SEVERITY: dict[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


class Text:
    """The lines of a document, to place things in: whole lines and line ends, in the client's units."""

    def __init__(self, lines: Sequence[str], codec: PositionCodec) -> None:
        self.lines, self._codec = lines, codec

    def line_range(self, line: int) -> types.Range:
        """Return the 1-based ``line`` from its first character that is not blank to its end; clamped to the
        text."""
        index = self._index(line)
        body = self._body(index)
        start = len(body) - len(body.lstrip())
        units = self._codec.client_num_units
        return types.Range(types.Position(index, units(body[:start])), types.Position(index, units(body)))

    def name_range(self, line: int, name: str) -> types.Range:
        """Return where ``name`` first stands on the 1-based ``line``; the whole line where it does not."""
        index = self._index(line)
        body = self._body(index)
        at = body.find(name) if name else -1
        if at < 0:
            return self.line_range(line)
        return types.Range(self.position(index, at), self.position(index, at + len(name)))

    def line_end(self, line: int) -> types.Position:
        index = self._index(line)
        return types.Position(index, self._codec.client_num_units(self._body(index)))

    def position(self, line: int, column: int) -> types.Position:
        """Return a 0-based line and column in code points, as the client counts."""
        body = self.lines[line] if line < len(self.lines) else ""
        return types.Position(line, self._codec.client_num_units(body[:column]))

    def _index(self, line: int) -> int:
        return min(max(line - 1, 0), max(len(self.lines) - 1, 0))

    def _body(self, index: int) -> str:
        return self.lines[index].rstrip("\r\n") if index < len(self.lines) else ""


def text_changes(
    changes: Iterable[types.TextDocumentContentChangeEvent],
) -> list[TextChange | None]:
    """Return the changes of one ``textDocument/didChange``; None for a new text as a whole. Columns stay in
    the client's units, since only lines are computed with them."""
    return [
        TextChange(
            c.range.start.line,
            c.range.start.character,
            end_line=c.range.end.line,
            end_column=c.range.end.character,
            text=c.text,
        )
        if isinstance(c, types.TextDocumentContentChangePartial)
        else None
        for c in changes
    ]


def finding_page(code: str) -> str:
    """Return the address of the page about a finding: the pages are installed with the server, so it works
    offline."""
    return (Path(__file__).parents[1] / "pages" / f"{code}.md").as_uri()


def diagnostics(items: Iterable[Diagnostic], uri: str, text: Text, client: Client) -> list[types.Diagnostic]:
    """Return what is said of the document at ``uri``; the other places of a cause as related information."""
    with_page = client.has("text_document", "publish_diagnostics", "code_description_support")
    with_places = client.has("text_document", "publish_diagnostics", "related_information")
    tags = client.get("text_document", "publish_diagnostics", "tag_support", "value_set") or ()
    result = []
    for item in items:
        finding = item.finding
        deprecated = finding.code == "deprecated"
        places = [
            types.DiagnosticRelatedInformation(types.Location(uri, text.line_range(line)), message)
            for line, message in item.places
        ]
        result.append(
            types.Diagnostic(
                range=text.name_range(finding.line, finding.message.split(" ")[0])
                if deprecated
                else text.line_range(finding.line),
                message=item.message,
                severity=_SEVERITY[finding.severity],
                code=finding.code,
                code_description=types.CodeDescription(finding_page(finding.code)) if with_page else None,
                source=SOURCE,
                tags=[types.DiagnosticTag.Deprecated]
                if deprecated and types.DiagnosticTag.Deprecated in tags
                else None,
                related_information=places if places and with_places else None,
            )
        )
    return result


def code_lenses(lenses: Iterable[Lens], client: Client) -> list[types.CodeLens]:
    result = []
    for lens in lenses:
        at = types.Position(lens.line - 1, 0)
        result.append(types.CodeLens(types.Range(at, at), lens_command(lens, client)))
    return result


def lens_command(lens: Lens, client: Client) -> types.Command:
    title = f"$({lens.icon}) {lens.title}" if lens.icon and client.icons else lens.title
    if lens.command == "choose" and SHOW_VERSIONS in client.commands:
        return types.Command(title, SHOW_VERSIONS, arguments=[lens.argument])
    if lens.command == "targetCosts":
        if SHOW_COSTS in client.commands:
            return types.Command(title, SHOW_COSTS, arguments=[lens.argument])
        return types.Command(title, ACTIONS["profile"].command, arguments=[lens.argument])
    if lens.command != "suggestions":
        return types.Command(title, ACTIONS[lens.command].command, arguments=[lens.argument])
    if SHOW_SUGGESTION in client.commands:
        return types.Command(title, SHOW_SUGGESTION, arguments=[lens.argument])
    argument = {name: value for name, value in lens.argument.items() if name != "title"}
    return types.Command(title, ACTIONS["accept"].command, arguments=[{**argument, "ask": True}])


def inlay_hints(hints: Iterable[Hint], text: Text) -> list[types.InlayHint]:
    return [
        types.InlayHint(
            position=text.line_end(hint.line),
            label=hint.text,
            tooltip=hint.tooltip or None,
            padding_left=True,
        )
        for hint in hints
    ]


def hover(content: str | None, client: Client) -> types.Hover | None:
    if content is None:
        return None
    kind = types.MarkupKind.Markdown if client.markdown_hover else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, content))


_KINDS: dict[str, types.CompletionItemKind] = {
    "function": types.CompletionItemKind.Function,
    "value": types.CompletionItemKind.Constant,
    "member": types.CompletionItemKind.EnumMember,
    "module": types.CompletionItemKind.Module,
    "keyword": types.CompletionItemKind.Property,
}


def completions(items: Iterable[Completion], client: Client) -> list[types.CompletionItem]:
    tags = client.get("text_document", "completion", "completion_item", "tag_support", "value_set") or ()
    struck = [types.CompletionItemTag.Deprecated] if types.CompletionItemTag.Deprecated in tags else None
    return [
        types.CompletionItem(
            item.text,
            kind=_KINDS[item.kind],
            detail=item.about or None,
            sort_text=f"{item.order}{item.text}",
            tags=struck if item.deprecated else None,
        )
        for item in items
    ]


def signature_help(about: SignatureHelp, client: Client) -> types.SignatureHelp:
    kind = types.MarkupKind.Markdown if client.markdown_signatures else types.MarkupKind.PlainText
    parameters = [types.ParameterInformation(text) for text in about.parameters]
    signature = types.SignatureInformation(
        about.signature, types.MarkupContent(kind, about.about), parameters
    )
    # an index past the last parameter marks none, in clients that take no null too
    active = len(parameters) if about.active is None else about.active
    return types.SignatureHelp([signature], active_signature=0, active_parameter=active)


def code_actions(
    actions: Iterable[CodeAction], client: Client, present: Sequence[types.Diagnostic] = ()
) -> list[types.CodeAction | types.Command]:
    """Return code actions as this client can take them: resolved later, at once by a command, or only as commands."""
    result: list[types.CodeAction | types.Command] = []
    for action in actions:
        if action.disabled and not client.has("text_document", "code_action", "disabled_support"):
            continue
        shown_first = action.resolve is not None and SHOW_SUGGESTION in client.commands
        lazy = action.resolve is not None and client.resolves_edits and not shown_first
        command = _action_command(action, shown_first)
        if not client.code_action_literals:
            if not action.disabled:
                result.append(command)
            continue
        preferred = action.preferred and client.has("text_document", "code_action", "is_preferred_support")
        result.append(
            types.CodeAction(
                title=action.title,
                kind=action.kind,
                diagnostics=[d for d in present if d.source == SOURCE and d.code in action.fixes] or None,
                is_preferred=True if preferred else None,
                disabled=types.CodeActionDisabled(action.disabled) if action.disabled else None,
                command=None if lazy or action.disabled else command,
                data=action.resolve if lazy else None,
                tags=[types.CodeActionTag.LlmGenerated]
                if action.by_model and client.tags_llm_edits
                else None,
            )
        )
    return result


def _action_command(action: CodeAction, shown_first: bool) -> types.Command:
    if shown_first:
        first_argument = {**action.argument, "title": action.name}
        return types.Command(action.title, SHOW_SUGGESTION, arguments=[first_argument])
    argument = action.argument if action.resolve is None else {**action.argument, "apply": True}
    return types.Command(action.title, ACTIONS[action.command].command, arguments=[argument])


def accept_command(suggestion_id: str, uri: str) -> types.Command:
    """Return what follows the edit of a resolved suggestion: the server records that it was accepted."""
    return types.Command(
        "Remember it", ACTIONS["accept"].command, arguments=[{"id": suggestion_id, "uri": uri}]
    )


def workspace_edit(
    uri: str, version: int | None, edits: Iterable[TextEdit], text: Text, client: Client
) -> types.WorkspaceEdit:
    """Return the edits of one document, bound to its version where the client knows versioned edits."""
    converted = [
        types.TextEdit(
            types.Range(text.position(e.start_line, e.start_col), text.position(e.end_line, e.end_col)),
            e.new_text,
        )
        for e in edits
    ]
    if client.has("workspace", "workspace_edit", "document_changes"):
        document = types.OptionalVersionedTextDocumentIdentifier(uri, version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, list(converted))])
    return types.WorkspaceEdit(changes={uri: converted})
