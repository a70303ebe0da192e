"""One question to a model and its answer, through the ``openai`` package. Every fault becomes one line."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from accelopt_agent.model.settings import ModelSettings, api_key


class ModelFault(Exception):
    """No usable answer, as one line. ``final``: asking again in this run is of no use. The token counts are those
    of an answer that came but is not usable: it was paid for."""

    def __init__(self, message: str, *, final: bool = False, tokens_in: int = 0, tokens_out: int = 0) -> None:
        super().__init__(message)
        self.final, self.tokens_in, self.tokens_out = final, tokens_in, tokens_out


@dataclass(frozen=True)
class Answer:
    """``text`` as the model wrote it. Token counts are the server's own; 0 where it does not tell them."""

    text: str
    tokens_in: int
    tokens_out: int


async def ask(settings: ModelSettings, system: str, user: str, *, backoff_seconds: float = 1.0) -> Answer:
    """Ask once; a server that is busy or out of reach is asked again, ``settings.attempts`` times in all, with
    pauses that double from ``backoff_seconds``. Never another model or address.

    Raises:
        ModelFault: the package is missing, the server does not answer, or the answer is empty, refused or cut off.
    """
    openai = _package()
    where = f"The model {settings.model} at {settings.base_url}"
    client = openai.AsyncOpenAI(
        base_url=settings.base_url,
        api_key=api_key(settings) or "none",
        timeout=settings.seconds,
        max_retries=0,
    )
    async with client:
        for attempt in range(1, settings.attempts + 1):
            try:
                reply = await asyncio.wait_for(_call(client, settings, system, user), settings.seconds)
                return _read(reply, where)
            except openai.AuthenticationError:
                message = f"{where} refuses the key; set {settings.key_variable} to a valid one."
                raise ModelFault(message, final=True) from None
            except openai.NotFoundError:
                raise ModelFault(f"{where} does not exist; check model and address.", final=True) from None
            except (openai.APITimeoutError, asyncio.TimeoutError):
                fault = f"{where} did not answer within {settings.seconds:g} s."
            except openai.RateLimitError:
                fault = f"{where} is busy (HTTP 429)."
            except openai.InternalServerError as error:
                fault = f"{where} failed (HTTP {error.status_code})."
            except openai.APIConnectionError:
                fault = f"{where} cannot be reached."
            except openai.APIStatusError as error:
                raise ModelFault(
                    f"{where} rejects the request (HTTP {error.status_code}).", final=True
                ) from None
            except (openai.OpenAIError, ValueError) as error:
                fault = f"{where} answered what is no answer ({type(error).__name__})."
            if attempt < settings.attempts:
                await asyncio.sleep(backoff_seconds * 2 ** (attempt - 1))
    raise ModelFault(f"{fault} It was tried {settings.attempts} times.", final=True)


def _package() -> Any:
    try:
        import openai
    except ImportError:
        message = "The package openai is missing; install accelopt-lsp[model] to use a model."
        raise ModelFault(message, final=True) from None
    return openai


async def _call(client: Any, settings: ModelSettings, system: str, user: str) -> Any:
    options: dict[str, Any] = {} if settings.temperature is None else {"temperature": settings.temperature}
    return await client.chat.completions.create(
        model=settings.model,
        messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
        max_tokens=settings.answer_tokens,
        **options,
    )


def _read(reply: Any, where: str) -> Answer:
    """What the reply says; the server is untrusted, so every part of it may be missing.

    Raises:
        ModelFault: there is no usable text in it.
    """
    usage = getattr(reply, "usage", None)
    tokens = _count(getattr(usage, "prompt_tokens", 0)), _count(getattr(usage, "completion_tokens", 0))
    choices = getattr(reply, "choices", None)
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = getattr(choice, "message", None)
    text = getattr(message, "content", None)
    reason = getattr(choice, "finish_reason", None)
    problem = None
    if getattr(message, "refusal", None) or reason == "content_filter":
        problem = "refuses to answer"
    elif reason == "length":
        problem = "was cut off at the length limit"
    elif not isinstance(text, str) or not text.strip():
        problem = "gave an empty answer"
    if problem is not None or not isinstance(text, str):
        raise ModelFault(f"{where} {problem}.", tokens_in=tokens[0], tokens_out=tokens[1])
    return Answer(text, *tokens)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
