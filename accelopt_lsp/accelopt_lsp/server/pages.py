"""Markdown pages that the server writes for a person: why a suggestion is faster, what runs did.

``accelopt-page:/HASH/NAME.md`` is a document of the server's own, whose tab shows the name. A client that says
``"pages": true`` shows it, told by the notification ``accelopt/show``; others get a file in the user's cache folder,
and those that open no files a message.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import platformdirs

from accelopt_lsp.errors import UserError
from accelopt_lsp.server.connection import EditorConnection

log = logging.getLogger(__name__)

SCHEME = "accelopt-page"

#: The notification that asks the client to show a page: ``{"uri", "title"}``.
SHOW = "accelopt/show"

#: So many characters of a page's name are in that of its file.
LONGEST_NAME = 80

#: So many pages are kept; an older one is to be asked for again.
KEPT = 50


class Pages:
    """The pages that were shown, by name."""

    def __init__(self, editor: EditorConnection) -> None:
        self._editor = editor
        self._texts: OrderedDict[str, str] = OrderedDict()

    def text(self, uri: str) -> str:
        """Return the page at ``accelopt-page:/HASH/NAME.md``.

        Raises:
            UserError: it is not kept (any more).
        """
        name = unquote(urlsplit(uri).path).lstrip("/")
        if name not in self._texts:
            raise UserError(f"The page {name} is not kept any more; ask for it again.")
        return self._texts[name]

    @property
    def grow(self) -> bool:
        """Whether a page may be shown before it is complete: this client's is written anew where it stands."""
        return self._editor.client.pages and self._editor.shows_own_documents

    async def show(
        self, name: str, about: str, title: str, text: str, brief: str, *, newer: bool = False
    ) -> None:
        """Show a page about something, a file's path for instance, of which each has a page of its own. A person reads
        ``name`` in the page's tab.

        ``newer`` text of one that was just shown appears where the person left it. ``brief`` is for a message.
        """
        whole = hashlib.sha256(f"{name} {about}".encode(errors="surrogatepass")).hexdigest()[:8]
        short = re.sub(r"[^\w .-]+", "-", name)[:LONGEST_NAME]
        name = f"{whole}/{short}.md"
        is_open = name in self._texts
        self._texts[name] = text
        self._texts.move_to_end(name)
        while len(self._texts) > KEPT:
            self._texts.popitem(last=False)
        if self.grow:
            uri = f"{SCHEME}:/{quote(name)}"
            if is_open:
                await self._editor.renew_document(uri)
            if not newer:
                self._editor.notify(SHOW, {"uri": uri, "title": title})
        elif self._editor.shows_files:
            path = Path(platformdirs.user_cache_dir("accelopt")) / "pages" / name
            try:
                await asyncio.to_thread(_write, path, text)
            except OSError as error:
                log.warning("%s cannot be written: %s", path, error)
                self._editor.say(brief)
                return
            await self._editor.show_file(path)
        else:
            self._editor.say(brief)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
