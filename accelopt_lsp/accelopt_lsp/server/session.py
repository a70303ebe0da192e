"""Hold what the parts of the server share for one editor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from accelopt_lsp.server.configuration import SettingsCache
from accelopt_lsp.server.connection import EditorConnection
from accelopt_lsp.server.documents import Documents
from accelopt_lsp.server.kernel_files import KernelFiles
from accelopt_lsp.server.language_versions import LanguageVersionsCache
from accelopt_lsp.server.model_access import ConsentPrompt
from accelopt_lsp.server.status import StatusLine
from accelopt_lsp.service.parser import ParserProcess
from accelopt_lsp.service.protocol import Service
from accelopt_lsp.state.jobs import BackgroundTasks, JobRegistry
from accelopt_lsp.state.signal import Signal
from accelopt_lsp.state.state_store import StateStore


@dataclass(frozen=True)
class Session:
    """What a part takes from in its constructor.

    ``work_changed`` brings the status up to date; ``work`` tells that a job started or ended, ``closing`` that the jobs
    are about to be ended.
    """

    editor: EditorConnection
    state: StateStore
    jobs: JobRegistry
    tasks: BackgroundTasks
    documents: Documents
    configuration: SettingsCache
    versions: LanguageVersionsCache
    status: StatusLine
    consent: ConsentPrompt
    service: Service
    parser: ParserProcess
    files: KernelFiles
    work_changed: Callable[[], None]
    work: Signal[[]] = field(default_factory=Signal)
    closing: Signal[[]] = field(default_factory=Signal)
