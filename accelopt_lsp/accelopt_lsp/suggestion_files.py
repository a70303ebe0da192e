"""Find a suggestion by its id, and write it into its file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from accelopt_lsp.errors import RefusedError, UserError
from accelopt_lsp.resources import settings_with
from accelopt_memory.whole_file import whole_file

if TYPE_CHECKING:
    from accelopt_agent.suggestions.suggestion import Suggestion
    from accelopt_lsp.service.protocol import Service
    from accelopt_lsp.settings.load import Settings


async def suggestion_of(service: Service, suggestion_id: str) -> tuple[Suggestion, Settings]:
    """Return a suggestion by its id, and the settings for its file with the memory that has it.

    Raises:
        UserError: there is none, or another version saved or checked it.
    """
    settings = settings_with(suggestion_id)
    suggestion = await service.suggestion(suggestion_id, settings)
    if suggestion is None:
        raise RefusedError(f"The memory has no entry {suggestion_id!r} that is a suggestion.")
    return suggestion, settings


def apply_to_file(suggestion: Suggestion) -> bool:
    """Change the file; False when it holds the suggested kernel already.

    Raises:
        RefusedError: the file changed so that the suggestion no longer fits; it is left as it is.
    """
    from accelopt_agent.suggestions.apply import edits_for, holds
    from accelopt_agent.suggestions.text_edit import ApplyRefusal, apply_to_text
    from accelopt_profiling.source_text import decode_source, read_regular

    path = Path(suggestion.file)
    try:
        text, encoding = decode_source(read_regular(path))
    except (OSError, UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise UserError(f"{path} cannot be changed: {error}.") from None
    if holds(text, suggestion.base_text, suggestion.text):
        return False
    edits = edits_for(text, suggestion)
    if isinstance(edits, ApplyRefusal):
        raise RefusedError(f"{path} was not changed. {edits.reason}")
    _replace(path, apply_to_text(text, edits), encoding)
    return True


def _replace(path: Path, text: str, encoding: str) -> None:
    """Write the file whole or not at all; links and permissions stay."""
    target = path.resolve()
    try:
        with whole_file(target, target.stat().st_mode & 0o7777, encoding) as out:
            out.write(text)
    except UnicodeEncodeError as error:
        raise UserError(f"{path} cannot be written: {error}.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from None
