"""Sends one query to a model and reads its answer, through the ``openai`` package. Every fault becomes one line."""

from __future__ import annotations

import asyncio
import difflib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from accelopt_agent.model.answer import Answer, AnswerReader, UnusableAnswerError, parse_completion
from accelopt_agent.model.consent import is_readable_on_the_way
from accelopt_agent.model.keys import api_key, without_key
from accelopt_agent.model.settings import ModelSettings
from accelopt_profiling.waiting import in_thread, within


def retry_after_seconds(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Read the seconds that ``Retry-After`` demands, as seconds or as a date (RFC 9110, 10.2.3); None without it."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, at - (time.time() if now is None else now))


def retry_pause(attempt: int, backoff_seconds: float, server_pause: float | None) -> float:
    """Return the seconds before the next attempt after the ``attempt``-th (from 1): twice as long each time, and at
    least what the server demands."""
    own: float = backoff_seconds * 2 ** (attempt - 1)
    return own if server_pause is None else max(own, server_pause)


@dataclass(frozen=True)
class ServerCapabilities:
    """The parts of a request that a server accepts.

    ``usage``: ``stream_options``. ``completion_limit``: it wants ``max_completion_tokens`` in place of ``max_tokens``.
    ``streams``: streaming.
    """

    usage: bool = True
    completion_limit: bool = False
    streams: bool = True

    def options(self, settings: ModelSettings) -> dict[str, Any]:
        """Return the request's fields beside model and messages."""
        limit = "max_completion_tokens" if self.completion_limit else "max_tokens"
        options: dict[str, Any] = {limit: settings.answer_tokens, "stream": self.streams}
        if self.streams and self.usage:
            options["stream_options"] = {"include_usage": True}
        if settings.temperature is not None:
            options["temperature"] = settings.temperature
        return options

    def without_what(self, complaint: str) -> ServerCapabilities | None:
        """Drop the capability that a rejected request's ``complaint`` is about.

        None when it is about none of these, so that repeating the request is useless.
        """
        text = complaint.lower()
        if "max_completion_tokens" in text and not self.completion_limit:
            return replace(self, completion_limit=True)
        if "stream_options" in text and self.usage:
            return replace(self, usage=False)
        if "stream" in text and self.streams:
            return replace(self, streams=False)
        return None


_known: dict[tuple[str, str], ServerCapabilities] = {}


def known_capabilities(settings: ModelSettings) -> ServerCapabilities:
    """Return the capabilities of the settings' server and model, as far as this process has learned them."""
    return _known.get((settings.base_url, settings.model), ServerCapabilities())


def remember_capabilities(settings: ModelSettings, traits: ServerCapabilities) -> None:
    _known[settings.base_url, settings.model] = traits


#: No answer is this long.
MOST_BYTES = 16 << 20


class ModelCallError(Exception):
    """A model gave no usable answer; the message is one line.

    ``final``: another query in this run is useless. The token counts are those of what arrived nevertheless, since it
    was paid for (see ``Answer``).
    """

    def __init__(
        self,
        message: str,
        *,
        final: bool = False,
        tokens_in: int = 0,
        tokens_out: int = 0,
        tokens_cached: int = 0,
        estimated: bool = False,
    ) -> None:
        super().__init__(message)
        self.final, self.tokens_in, self.tokens_out = final, tokens_in, tokens_out
        self.tokens_cached, self.estimated = tokens_cached, estimated


@dataclass
class _TokensUsed:
    """The tokens of the tries of one call."""

    read: int = 0
    written: int = 0
    cached: int = 0
    estimated: bool = False

    def add(self, reading: AnswerReader) -> None:
        read, written, cached, estimated = reading.tokens
        self.read, self.written, self.cached = self.read + read, self.written + written, self.cached + cached
        self.estimated = self.estimated or estimated

    def fault(self, message: str, *, final: bool) -> ModelCallError:
        return ModelCallError(
            message, final=final, tokens_in=self.read, tokens_out=self.written,
            tokens_cached=self.cached, estimated=self.estimated,
        )  # fmt: skip

    def answer(self, text: str) -> Answer:
        return Answer(
            text, self.read, tokens_out=self.written, tokens_cached=self.cached, estimated=self.estimated
        )


@dataclass(eq=False)
class _RetryError(Exception):
    """One attempt failed, another may succeed.

    ``wait_seconds`` is what the server asks to wait, in seconds.
    """

    message: str
    wait_seconds: float | None = None


@dataclass
class _Call:
    """One question. The key is known here and shown nowhere."""

    settings: ModelSettings
    messages: list[dict[str, str]]
    openai: Any
    key: str | None = field(repr=False)
    spent: _TokensUsed = field(default_factory=_TokensUsed)
    deadline: float = 0.0

    @property
    def where(self) -> str:
        return f"The model {self.settings.model} at {self.settings.base_url}"

    async def answer(self, client: Any, backoff_seconds: float) -> Answer:
        """Try until there is an answer or no more try is left. Raises ModelCallError."""
        settings = self.settings
        for attempt in range(1, settings.attempts + 1):
            try:
                return await self._understood(client)
            except _RetryError as fault:
                wait = retry_pause(attempt, backoff_seconds, fault.wait_seconds)
                last = attempt == settings.attempts
                message = f"{fault.message} It was tried {settings.attempts} times." if last else ""
                if not last and wait > settings.patience_seconds:
                    message = f"{fault.message} It asks to wait {wait:.0f} s, longer than a run waits."
                if message:
                    raise self.spent.fault(message, final=True) from None
                await asyncio.sleep(wait)
        raise AssertionError("attempts is at least 1")

    async def _understood(self, client: Any) -> Answer:
        """Return one try, without what the server does not understand.

        Raises _RetryError or ModelCallError.
        """
        openai = self.openai
        while True:
            traits = known_capabilities(self.settings)
            try:
                return await self._try(client, traits.options(self.settings))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                detail = without_key(str(getattr(error, "message", error)), self.key)
                lesser = traits.without_what(str(getattr(error, "message", error)))
                if lesser is None:
                    message = f"{self.where} rejects the request (HTTP {error.status_code}): {detail}"
                    raise self.spent.fault(message, final=True) from None
                remember_capabilities(self.settings, lesser)

    async def _try(self, client: Any, options: dict[str, Any]) -> Answer:
        openai, settings, where = self.openai, self.settings, self.where
        prompt = sum(len(m["content"]) for m in self.messages)
        reading = AnswerReader(prompt, settings.answer_tokens)
        self.deadline = asyncio.get_running_loop().time() + settings.longest_seconds
        try:
            return await self._read(client, options, reading)
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            raise
        except UnusableAnswerError as fault:
            self.spent.add(reading)
            raise self.spent.fault(f"{where} {fault}.", final=False) from None
        except openai.AuthenticationError:
            message = f"{where} refuses the key; set {settings.key_variable} to a valid one."
            raise self.spent.fault(message, final=True) from None
        except openai.NotFoundError:
            message = f"{where} does not exist; check model and address.{await self._models(client)}"
            raise self.spent.fault(message, final=True) from None
        except openai.RateLimitError as error:
            raise _RetryError(
                f"{where} is busy (HTTP 429).", retry_after_seconds(error.response.headers)
            ) from None
        except openai.InternalServerError as error:
            message = f"{where} failed (HTTP {error.status_code})."
            raise _RetryError(message, retry_after_seconds(error.response.headers)) from None
        except openai.APIStatusError as error:
            detail = without_key(str(error.message), self.key)
            message = f"{where} rejects the request (HTTP {error.status_code}): {detail}"
            raise self.spent.fault(message, final=True) from None
        except _RetryError:
            self.spent.add(reading)
            raise
        except openai.APITimeoutError:
            self.spent.add(reading)
            slow = "go on" if reading.pieces else "answer"
            raise _RetryError(f"{where} did not {slow} within {settings.seconds:g} s.") from None
        except openai.APIConnectionError:
            self.spent.add(reading)
            broke = "broke off in the middle of its answer" if reading.pieces else "cannot be reached"
            raise _RetryError(f"{where} {broke}.") from None
        except (openai.OpenAIError, ValueError) as error:
            self.spent.add(reading)
            detail = without_key(str(error), self.key) if type(error) is openai.APIError else ""
            no_answer = (
                f"reports a failure: {detail}"
                if detail
                else f"answered what is no answer ({type(error).__name__})."
            )
            raise _RetryError(f"{where} {no_answer}") from None

    async def _read(self, client: Any, options: dict[str, Any], reading: AnswerReader) -> Answer:
        calls = client.chat.completions.with_streaming_response
        request = calls.create(model=self.settings.model, messages=self.messages, **options)
        async with request as response:
            kind = str(response.headers.get("content-type", ""))
            streamed = bool(options["stream"]) and "event-stream" in kind
            if streamed:
                async for event in self._in_time(await response.parse()):
                    reading.take(event)
            else:
                reading.take(parse_completion(await self._body(response)))
        result = reading.finish(streamed=streamed)
        self.spent.add(reading)
        return self.spent.answer(result.text)

    async def _body(self, response: Any) -> bytes:
        body = b""
        try:
            async for piece in self._in_time(response.iter_bytes()):
                body += piece
                if len(body) > MOST_BYTES:
                    raise UnusableAnswerError(f"answered more than {MOST_BYTES >> 20} MiB and was stopped")
        except (UnusableAnswerError, _RetryError, self.openai.OpenAIError):
            raise
        except Exception:  # here the package lets the errors of whichever HTTP library it has through
            raise _RetryError(f"{self.where} broke off in the middle of its answer.") from None
        return body

    async def _in_time(self, pieces: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """``pieces`` until the longest time for an answer is over.

        Each alone is waited for by the HTTP library's own time-out.
        """
        async for piece in pieces:
            if asyncio.get_running_loop().time() > self.deadline:
                raise _RetryError(f"{self.where} was not done after {self.settings.longest_seconds:g} s.")
            yield piece

    async def _models(self, client: Any) -> str:
        """Return which models the address has instead, as a remark. It is not asked for any of them."""
        try:
            listed = await within(min(5.0, self.settings.seconds), client.models.list())
            names = [str(m.id) for m in listed.data][:200]
        except (self.openai.OpenAIError, asyncio.TimeoutError, ValueError, AttributeError, TypeError):
            return ""
        close = difflib.get_close_matches(self.settings.model, names, n=3, cutoff=0.3) or names[:3]
        return " " + without_key(f"It has {', '.join(close)}.", self.key) if close else ""


class ModelQuery(Protocol):
    """A way to query a model: ``query_model`` over HTTP, or an editor's own models (``editor_models.py``)."""

    async def __call__(
        self,
        settings: ModelSettings,
        system: str,
        user: str,
        *,
        backoff_seconds: float = 1.0,
    ) -> Answer:
        """As ``query_model``. Raises ModelCallError."""


async def query_model(
    settings: ModelSettings,
    system: str,
    user: str,
    *,
    backoff_seconds: float = 1.0,
) -> Answer:
    """Query a model once, streaming.

    A server that is busy or out of reach is tried again, ``settings.attempts`` times in all, with pauses that double
    from ``backoff_seconds`` or are as long as it demands. Never another model or address.

    Cancelling closes the connection, which ends the server's work.

    Raises:
        ModelCallError: the package is missing, the server does not answer, or the answer is empty, refused, cut off or
            endless.
    """
    if settings.of_editor:
        message = f"The model {settings.model} is the editor's, and there is no editor here."
        raise ModelCallError(message, final=True)
    if is_readable_on_the_way(settings.base_url):
        message = (
            f"{settings.base_url} is not encrypted: use https, or a port of this machine (an SSH tunnel)."
        )
        raise ModelCallError(message, final=True)
    openai, key, client = await in_thread(_open, settings)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    call = _Call(settings, messages, openai, key)
    async with client:
        return await call.answer(client, backoff_seconds)


def _open(settings: ModelSettings) -> tuple[Any, str | None, Any]:
    """Return the package, the key and a client.

    Blocks: it is imported at first, a keyring asked, certificates are read.
    """
    openai, key = _package(), api_key(settings)
    # a redirect would carry the code to an address that nobody agreed to
    connection = openai.DefaultAsyncHttpxClient(follow_redirects=False, timeout=settings.seconds)
    client = openai.AsyncOpenAI(
        base_url=settings.base_url, api_key=key or "none", timeout=settings.seconds, max_retries=0,
        http_client=connection,
    )  # fmt: skip
    return openai, key, client


def _package() -> Any:
    try:
        import openai
    except ImportError:
        message = "The package openai is missing; install accelopt-lsp[model] to use a model."
        raise ModelCallError(message, final=True) from None
    return openai
