"""Answer every request, also one whose parameters cannot be read: pygls only logs those, and an editor would wait."""

from __future__ import annotations

from typing import Any

from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol

from accelopt_lsp.server.first_message import encoded


class AnsweringProtocol(LanguageServerProtocol):
    """pygls' protocol, which refuses a malformed request with an error."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            number = data.get("id")
            if "method" in data and isinstance(number, (int, str)) and self.writer is not None:
                refusal = {
                    "code": error.code,
                    "message": f"The parameters of {data['method']} cannot be read.",
                }
                self.writer.write(encoded({"jsonrpc": "2.0", "id": number, "error": refusal}))
            raise
