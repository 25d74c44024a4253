"""Messages of OpenAI's chat completions, which vLLM and most local servers speak, and what a text model is told."""

from __future__ import annotations

import base64
import re
from typing import Any

from deskhand.backends.base import Outcome
from deskhand.vendors.fields import plain
from deskhand.vendors.results import CallResult


def data_url(result: CallResult | Outcome) -> str | None:
    """A picture as a ``data:`` address; None when there is none."""
    return None if result.picture is None else picture_url(result.picture)


def picture_url(picture: bytes) -> str:
    """An encoded picture as a ``data:`` address."""
    return f"data:{media_type(picture)};base64,{base64.b64encode(picture).decode()}"


def media_type(picture: bytes) -> str:
    """By the file's own first bytes (PNG, JPEG and WebP are what the hand makes)."""
    if picture[:3] == b"\xff\xd8\xff":
        return "image/jpeg"
    return "image/webp" if picture[:4] == b"RIFF" else "image/png"


def chat_message(text: str, picture: str | None) -> dict[str, Any]:
    """A user message in the form of OpenAI's chat completions, which vLLM and most local servers speak."""
    content: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": picture}}] if picture else []
    content.append({"type": "text", "text": text})
    return {"role": "user", "content": content}


def code_block(text: str) -> str | None:
    """What stands in the fenced code blocks of a text, one after the other; None without one."""
    blocks = re.findall(r"```[ \t]*(?:python|py)?[ \t]*\n?(.*?)```", text, re.DOTALL)
    return "\n".join(block.strip() for block in blocks) if blocks else None


def reply_text(reply: Any) -> str | None:
    """The text of a reply: a string, a message, or a completion's first choice; None when it holds none."""
    value = plain(reply)
    if isinstance(value, dict):
        if isinstance(value.get("choices"), list) and value["choices"]:
            value = value["choices"][0]
        value = value.get("message", value) if isinstance(value, dict) else None
        value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) else None


def said(result: CallResult) -> str:
    """What a model that reads plain text is told of one call."""
    if result.ok:
        return f"Done. {result.text}".strip()
    told = {
        "skipped": "Not executed: an earlier action failed.",
        "not sent": "Not executed: another action was refused, so nothing was sent.",
    }
    return told.get(result.status) or f"Error: {result.text or 'it did not work'}"
