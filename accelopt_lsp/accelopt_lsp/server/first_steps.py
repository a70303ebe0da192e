"""Answer what a first run needs: what is installed, whether a host and a model answer, and an example to try."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs

from accelopt_lsp.errors import UserError
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.settings_sync import SettingsSync
from accelopt_lsp.settings.approvals import Approvals
from accelopt_lsp.settings.load import Settings

#: The files of each example, the kernel's first.
EXAMPLES = {
    "nki": ("nki_silu.py",),
    "triton": ("triton_softmax.py", "triton_softmax_problem.py"),
}

#: What a model is asked to see whether it answers; nothing of a project is in it.
QUESTION = "Answer with the word ready."
QUESTION_SECONDS = 60.0


class FirstSteps:
    def __init__(self, session: Session, settings: SettingsSync) -> None:
        self._editor, self._configuration, self._settings = session.editor, session.configuration, settings
        self._documents = session.documents

    def actions(self) -> Mapping[str, Handler]:
        return {
            "doctor": self.doctor,
            "openExample": self.open_example,
            "testHost": self.test_host,
            "testModel": self.test_model,
        }

    async def doctor(self, args: Arguments) -> dict[str, Any]:
        """Return what ``accelopt doctor`` says, with the settings of a document or of the first folder."""
        from accelopt_lsp.installation import all_checks
        from accelopt_profiling.plain import to_plain

        settings = await self._latest(args.uri)
        return {"checks": to_plain(await asyncio.to_thread(all_checks, settings))}

    async def open_example(self, args: Arguments) -> dict[str, Any]:
        """Open a copy of the example ``args.id``, in a folder that is trusted: what is run there is ours.

        Raises:
            UserError: there is no such example, or it cannot be written.
        """
        files = EXAMPLES.get(args.id or "nki")
        if files is None:
            raise UserError(f"There is no example {args.id!r}; there is {', '.join(EXAMPLES)}.")
        try:
            path = await asyncio.to_thread(_example, files)
        except OSError as error:
            raise UserError(f"The example cannot be written: {error}.") from None
        await self._settings.reconfigure()
        if self._editor.shows_files:
            await self._editor.show_file(path, take_focus=True)
        return {"uri": path.as_uri()}

    async def test_host(self, args: Arguments) -> dict[str, Any]:
        """Return what the host ``args.id`` has, or why it does not answer.

        Raises:
            UserError: the settings have no such host.
        """
        from accelopt_lsp.reached_hosts import reach

        settings = await self._latest(args.uri)
        if args.id != "local" and args.id not in settings.hosts:
            raise UserError(f"There is no host {args.id!r} in the settings.")
        host = await reach(settings, args.id)
        answer = {"reachable": host.reachable, "error": host.error or "", "python": host.python}
        return {**answer, "versions": host.versions, "devices": host.device_names}

    async def test_model(self, args: Arguments) -> dict[str, Any]:
        """Ask the configured model one question without anything of a project; return its answer, or the fault."""
        from accelopt_agent.model.client import ModelCallError, query_model
        from accelopt_lsp.models import configured_model

        settings = await self._latest(args.uri)
        model = configured_model(settings)
        if model is None:
            return {"answer": "", "fault": "No model is configured."}
        try:
            limited = replace(model, seconds=min(model.seconds, QUESTION_SECONDS))
            answer = await query_model(limited, "You are asked whether you answer at all.", QUESTION)
        except ModelCallError as fault:
            return {"answer": "", "fault": str(fault)}
        return {"answer": answer.text, "fault": "", "tokens": [answer.tokens_in, answer.tokens_out]}

    async def _latest(self, uri: str | None) -> Settings:
        """Return the settings as the editor has them now: it may have been told of a change before we were."""
        await self._settings.reconfigure()
        root = next(iter(self._documents.folders), Path.cwd())
        return await self._configuration.of((uri and file_path(uri)) or str(root / "kernel.py"))


def _example(files: tuple[str, ...]) -> Path:
    """Return a person's copy of an example, made and trusted where there is none yet. Raises OSError."""
    from accelopt_lsp.resources import examples_folder

    folder = platformdirs.user_data_path("accelopt", appauthor=False) / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    for name in files:
        if not (folder / name).exists():
            shutil.copyfile(examples_folder() / name, folder / name)
    Approvals.of_user(os.environ).give(folder, trust=True)
    return folder / files[0]
