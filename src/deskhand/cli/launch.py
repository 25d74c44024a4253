"""``deskhand launch``: open an application by name and wait for its window."""

from __future__ import annotations

from typing import Annotated

import typer

from deskhand.cli.elsewhere import TokenFileOption, UrlOption, hand_at
from deskhand.cli.interruption import interruptible
from deskhand.cli.output import DisplayOption, JsonOption, SessionOption, XauthorityOption, end
from deskhand.hand.answering import Reply, answer


def add_to(app: typer.Typer) -> None:
    app.command("launch")(launch)


def launch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name as `deskhand apps` shows it, or its id.")],
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    session: SessionOption = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, max=60, help="For its window to come.")
    ] = 10.0,
    keep_open: Annotated[bool, typer.Option("--keep-open", help="Never close it by policy.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Open an application; succeeds once its window is there."""
    action = {"action": "launch", "app": name, "timeout": timeout, "keep_open": keep_open}
    with interruptible(hand_at(url, token_file, display, xauthority, session)) as hand:
        reply = answer(hand, {"actions": [action], "settle": {"mode": "none"}})
    result = dict((reply.answer.get("results") or [{}])[0])
    if "error" in reply.answer:
        result.setdefault("error", reply.answer["error"])
    told = {"ok": reply.status == 0, "sent": reply.answer.get("sent", "none"), **result}
    told.update({key: reply.answer[key] for key in ("kind", "near", "ids") if key in reply.answer})
    window = result.get("window") or {}
    text = f"{window.get('title')}  (window {window.get('id')}, {result.get('elapsed_ms')} ms)" if told["ok"] else ""
    end(Reply({**told, "results": reply.answer.get("results", [])}, None, reply.status), as_json, text)
