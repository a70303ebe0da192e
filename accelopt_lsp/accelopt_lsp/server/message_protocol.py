"""Answer every request once: also one whose parameters cannot be read, which pygls only logs and an editor would wait
for, but not ``initialize`` a second time where ``first_message.py`` has answered it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol, lsp_method

from accelopt_lsp.server.first_message import encoded


class AnsweringProtocol(LanguageServerProtocol):
    """pygls' protocol, which refuses a malformed request with an error.

    ``answered`` is the id of the request that has its answer already. If it ends in an error after all, the editor
    shows that as a message.
    """

    answered: int | str | None = None

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, Any]:
        """Leave pygls' answer out where there is one: it first has our own handler run, then takes a tenth of the
        server's start to build the answer."""
        steps = super().lsp_initialize(params)
        if self.answered is None:
            return (yield from steps)
        yield next(steps)
        return None

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException:
            number = data.get("id")
            if "method" in data and isinstance(number, (int, str)) and self.writer is not None:
                message = f"The parameters of {data['method']} cannot be read."
                refusal = {"code": JsonRpcInvalidParams.CODE, "message": message}
                if number == self.answered:
                    self._show_late_error(message)
                else:
                    self.writer.write(encoded({"jsonrpc": "2.0", "id": number, "error": refusal}))
            raise

    def _send_response(
        self, msg_id: int | str, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        if self.answered is None or msg_id != self.answered:
            super()._send_response(msg_id, result, error)
        elif error is not None:
            self._show_late_error(error.message)
        else:
            self.answered = None

    def _show_late_error(self, message: str) -> None:
        self.answered = None
        why = f"The server could not read what the editor can do: {message}"
        self.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(types.MessageType.Error, why))
