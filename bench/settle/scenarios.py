"""What the recorder does on a desktop: applications brought to where the action makes sense, then one action."""

from __future__ import annotations

import functools
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from deskhand.errors import DeskhandError
from deskhand.hand.hand import Hand
from deskhand.hand.x11 import core

from .recorder import Act

#: An image of one colour; its server waits before it sends it.
_IMAGE = b"<svg xmlns='http://www.w3.org/2000/svg' width='400' height='200'><rect width='400' height='200'/></svg>"
_SPINNER = (
    "<style>@keyframes s{{to{{transform:rotate(1turn)}}}}"
    "div{{width:{size}px;height:{size}px;border:2px solid #bbb;border-top-color:#00f;border-radius:50%;"
    "animation:s 1s linear infinite}}</style><div></div><p><input autofocus></p>"
)
_PAGES = {
    "/static": "<h1>Static</h1><p>Nothing more comes.</p>",
    "/late600": "<h1>Late</h1><img width=400 height=200 src=/image?600>",
    "/late1500": "<h1>Late</h1><img width=400 height=200 src=/image?1500>",
    "/spinner": _SPINNER.format(size=60),
    "/throbber": _SPINNER.format(size=10),
}


class Scenario(NamedTuple):
    """``what`` is the kind of action; ``act`` makes the steps from the pages' address."""

    what: str
    act: Callable[[str], Act]


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path, _, wait = self.path.partition("?")
        if path == "/image":
            time.sleep(int(wait) / 1000)  # the late image is what is recorded
            self._answer(_IMAGE, "image/svg+xml")
        elif path in _PAGES:
            self._answer(f"<!doctype html><title>{path[1:]}</title>{_PAGES[path]}".encode(), "text/html")
        else:
            self.send_error(404)

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing: the terminal is the recorder's."""


@contextmanager
def pages() -> Iterator[str]:
    """A web server on this machine; gives its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="pages", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _do(hand: Hand, *actions: dict[str, Any], settle: str = "none") -> list[dict[str, Any]]:
    answer, _picture = hand.act({"actions": list(actions), "settle": {"mode": settle}})
    if not answer["ok"]:
        failed = [result["error"] for result in answer["results"] if "error" in result]
        raise DeskhandError(f"the scenario can not go on: {'; '.join(failed) or answer.get('error', 'it failed')}")
    results: list[dict[str, Any]] = answer["results"]
    return results


def _prepare(hand: Hand, *actions: dict[str, Any]) -> None:
    _do(hand, *actions, settle="quiet")


def _focus(hand: Hand) -> int:
    return core.get_input_focus(hand.display.conn)


def _under(hand: Hand) -> int:
    """The innermost window under the pointer."""
    conn = hand.display.conn
    window = conn.root
    while child := core.query_pointer(conn, window).child:
        window = child
    return window


def _window(hand: Hand, word: str, application: str) -> dict[str, Any]:
    """The window with ``word`` in its class, launched when there is none; focused."""
    for _ in range(2):
        for window in hand.windows():
            if word in str(window).lower():
                _prepare(hand, {"action": "focus", "window": window["id"]})
                return window
        _prepare(hand, {"action": "launch", "app": application})
    raise DeskhandError(f"{application} shows no window with {word!r} in its facts: look what it is called now")


def _apps_menu(hand: Hand) -> Iterator[int]:
    _prepare(hand, {"action": "move", "x": 40, "y": 13})
    yield _under(hand)
    _do(hand, {"action": "click", "x": 40, "y": 13})
    _ESCAPES.append(hand)


def _type(word: str, application: str, text: str, hand: Hand) -> Iterator[int]:
    _leave_menus(hand)
    _window(hand, word, application)
    yield _focus(hand)
    _do(hand, {"action": "type", "text": text})


def _key(word: str, application: str, keys: str, hand: Hand) -> Iterator[int]:
    """A key that opens a menu or a dialog, which the next scenario closes."""
    _leave_menus(hand)
    _window(hand, word, application)
    yield _focus(hand)
    _do(hand, {"action": "key", "keys": keys})
    _ESCAPES.append(hand)


def _page(path: str, address: str, hand: Hand) -> Iterator[int]:
    _leave_menus(hand)
    _window(hand, "firefox", "firefox-esr")
    _prepare(hand, {"action": "key", "keys": "ctrl+l"}, {"action": "type", "text": address + path})
    yield _focus(hand)
    _do(hand, {"action": "key", "keys": "Return"})


def _new_tab(hand: Hand) -> Iterator[int]:
    _leave_menus(hand)
    _window(hand, "firefox", "firefox-esr")
    yield _focus(hand)
    _do(hand, {"action": "key", "keys": "ctrl+t"})


def _beside(path: str, address: str, hand: Hand) -> Iterator[int]:
    """Type into a page on which something turns for ever."""
    _leave_menus(hand)
    _window(hand, "firefox", "firefox-esr")
    _prepare(
        hand,
        {"action": "key", "keys": "ctrl+l"},
        {"action": "type", "text": address + path},
        {"action": "key", "keys": "Return"},
        {"action": "wait", "seconds": 2},
    )
    yield _focus(hand)
    _do(hand, {"action": "type", "text": "words"})


#: Hands with an open menu, which the next scenario closes.
_ESCAPES: list[Hand] = []


def _leave_menus(hand: Hand) -> None:
    """And leave nothing under the pointer that would show a tooltip in the middle of the recording."""
    while _ESCAPES:
        _ESCAPES.pop()
        _prepare(hand, {"action": "key", "keys": "Escape"})
    _prepare(hand, {"action": "move", "x": 1270, "y": 400})


def _fixed(act: Callable[..., Iterator[int]], *given: object) -> Callable[[str], Act]:
    return lambda _address: functools.partial(act, *given)


def _on(act: Callable[..., Iterator[int]], path: str) -> Callable[[str], Act]:
    return lambda address: functools.partial(act, path, address)


SCENARIOS = {
    "apps-menu": Scenario("click", _fixed(_apps_menu)),
    "mp-type": Scenario("type", _fixed(_type, "mousepad", "mousepad", "words ")),
    "mp-altf": Scenario("key", _fixed(_key, "mousepad", "mousepad", "alt+f")),
    "mp-open": Scenario("key", _fixed(_key, "mousepad", "mousepad", "ctrl+o")),
    "mp-about": Scenario("key", _fixed(_key, "mousepad", "mousepad", "ctrl+h")),
    "th-new": Scenario("key", _fixed(_key, "thunar", "thunar", "ctrl+n")),
    "xt-ls": Scenario("type", _fixed(_type, "xterm", "debian-xterm", "ls /\n")),
    "xt-slow": Scenario("type", _fixed(_type, "xterm", "debian-xterm", "sleep 0.7; ls /\n")),
    "xt-pause": Scenario("type", _fixed(_type, "xterm", "debian-xterm", "ls /; sleep 0.5; ls /etc; sleep 0.5; date\n")),
    "ff-static": Scenario("key", _on(_page, "/static")),
    "ff-newtab": Scenario("key", _fixed(_new_tab)),
    "ff-img600": Scenario("key", _on(_page, "/late600")),
    "ff-img1500": Scenario("key", _on(_page, "/late1500")),
    "ff-spin-type": Scenario("type", _on(_beside, "/spinner")),
    "ff-throb-type": Scenario("type", _on(_beside, "/throbber")),
}
