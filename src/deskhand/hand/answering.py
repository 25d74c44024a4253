"""One JSON request to one JSON answer and one exit status: what the one-file form and the command line share.

Requests: a batch's envelope (``{"actions": [...]}``), or ``{"request": NAME, ...}`` with one of ``act``,
``screenshot``, ``windows``, ``apps``, ``find``, ``info``, ``release`` (what the session holds); a stream has those of
``stream_lease`` too.
"""

from __future__ import annotations

import base64
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from .envelope import PictureWish, parse_batch
from .errors import (
    ActionError,
    BackendError,
    BatchRefused,
    DeskhandError,
    DesktopInUse,
    DisplayLost,
    DisplayTimeout,
    NoDisplay,
    Unsupported,
    in_one_line,
)
from .hand import Hand
from .picture import Picture

OK, ERROR, REFUSED, FAILED, NOT_ALLOWED, NO_DISPLAY = 0, 1, 2, 3, 4, 5

Answer = Dict[str, Any]


class Reply(NamedTuple):
    """``answer`` is JSON-ready, the picture's facts included; its bytes are in ``picture``."""

    answer: Answer
    picture: Optional[Picture]
    status: int

    def with_base64(self) -> Answer:
        """The answer with the picture's bytes in it."""
        if self.picture is None:
            return self.answer
        encoded = base64.b64encode(self.picture.content).decode("ascii")
        return {**self.answer, "picture": {**self.answer["picture"], "base64": encoded}}


def answer(hand: Hand, request: Any, alive: Callable[[], bool] = lambda: True) -> Reply:
    """Do what ``request`` asks; errors become answers."""
    try:
        return _answer(hand, request, alive)
    except Exception as error:  # a fault of ours, too, must become an answer
        return error_reply(error, request)


def status_of(error: Exception) -> int:
    """The exit status an error stands for."""
    if isinstance(error, (NoDisplay, DisplayLost)):
        return NO_DISPLAY
    if isinstance(error, (BatchRefused, Unsupported)) or _is_of_lookup(error):
        return REFUSED
    if isinstance(error, (ActionError, BackendError)):
        return FAILED
    return ERROR


def error_reply(error: Exception, request: Any = None) -> Reply:
    """The answer that tells of an error: ``ok`` false, the sentence, and how much was sent."""
    facts = dict(getattr(error, "facts", {}))
    told = facts.pop("answer", None)
    ours = isinstance(error, DeskhandError) or _is_of_lookup(error)
    sent = getattr(error, "sent", "none") if ours else "unknown"
    if isinstance(request, dict) and request.get("request", "act") != "act":
        sent = "none"  # all others only look
    body: Answer = told or {
        "ok": False,
        "sent": sent,
        "results": _results(error, request),
        "settled": True,
        "settle": "none",
        "settle_ms": 0,
        "moving": [],
    }
    body["error"] = in_one_line(error)
    body["kind"] = _kind(error)
    index = getattr(error, "index", None)
    if index is not None:
        body["index"] = index
    body.update({name: value for name, value in facts.items() if name not in body})
    return Reply(body, None, status_of(error))


def _answer(hand: Hand, request: Any, alive: Callable[[], bool]) -> Reply:
    name = "act"
    if isinstance(request, dict) and "request" in request:
        request = dict(request)
        name = request.pop("request")
    if name == "act":
        body, picture = hand.act(request, alive)
        if picture is not None:
            body["picture"] = picture.facts()
        status = OK if body["ok"] else FAILED
        return Reply(body, picture, status)
    if name == "screenshot":
        return _screenshot(hand, request)
    if name in ("lease", "end_lease"):
        raise Unsupported("a lease lasts as long as its hand runs: ask for it in a stream (--stream)")
    if name not in ("windows", "apps", "find", "info", "release"):
        raise BatchRefused(
            f"there is no request {str(name)[:60]!r}: use act, screenshot, windows, apps, find, info or release"
        )
    unknown = [field for field in request if (name, field) != ("find", "app")]
    if unknown:
        raise BatchRefused(f"the request {name} has no field {str(unknown[0])[:60]!r}")
    if name == "windows":
        return Reply({"windows": hand.windows()}, None, OK)
    if name == "apps":
        return Reply({"apps": hand.apps()}, None, OK)
    if name == "info":
        return Reply(hand.info(), None, OK)
    if name == "release":
        return Reply({"ok": True, "released": hand.release()}, None, OK)
    if not isinstance(request.get("app"), str):
        raise BatchRefused("the request find needs app, the name or id of an application")
    return Reply(hand.find(request["app"]).as_dict(), None, OK)


def _screenshot(hand: Hand, request: Dict[str, Any]) -> Reply:
    # The fields are those of an envelope's picture, checked in the same place.
    wish = parse_batch({"actions": [{"action": "screenshot"}], "picture": request or True}).picture
    assert wish is not None
    region = None
    if wish.region is not None:
        x0, y0, x1, y1 = (int(corner) for corner in wish.region)
        region = (x0, y0, x1, y1)
    picture = hand.screenshot(region, PictureWish(wish.format, wish.max_edge, None, wish.cursor))
    return Reply({"ok": True, "picture": picture.facts()}, picture, OK)


def _results(error: Exception, request: Any) -> List[Dict[str, Any]]:
    """One result an action: the one that is wrong failed, the others were skipped."""
    index = getattr(error, "index", None)
    actions = request.get("actions") if isinstance(request, dict) else None
    if index is None or not isinstance(actions, list):
        return []
    results: List[Dict[str, Any]] = []
    for number, item in enumerate(actions):
        name = item.get("action") if isinstance(item, dict) else None
        results.append({"action": name if isinstance(name, str) else None, "status": "skipped"})
        if number == index:
            results[-1].update(status="failed", error=str(error))
    return results


def _kind(error: Exception) -> str:
    if isinstance(error, DisplayTimeout):
        return "timeout"
    if isinstance(error, DisplayLost):
        return "lost"
    if isinstance(error, NoDisplay):
        return "no_display"
    if isinstance(error, DesktopInUse):
        return "in_use"
    if isinstance(error, Unsupported):
        return "unsupported"
    if isinstance(error, BatchRefused) or _is_of_lookup(error):
        return "refused"
    return "failed" if isinstance(error, DeskhandError) else "fault"


def _is_of_lookup(error: Exception) -> bool:
    """Whether it is an error of ``applications``, which nobody can have raised before it was imported."""
    applications = sys.modules.get(f"{__package__}.applications")
    return applications is not None and isinstance(error, applications.ApplicationError)
