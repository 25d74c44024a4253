"""Kinds of step on a desktop: applications brought to where the action makes sense, and one action.

The recorder does them to record traces, ``bench.step`` to compare ways of doing them.
"""

from __future__ import annotations

import contextlib
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
    "/anim800": (
        "<style>@keyframes m{to{transform:translateX(300px)}}div{width:200px;height:100px;background:#06c;"
        "animation:m 800ms ease forwards}</style><h1>Animation</h1><div></div>"
    ),
    "/later400": (
        "<h1>Later</h1><p id=p>Wait.</p><script>setTimeout(() => p.innerHTML = '<h2>Here it is.</h2>'.repeat(5), 400)"
        "</script>"
    ),
    "/long": "<h1>Long</h1>" + "".join(f"<p>Paragraph {number} of a long page.</p>" for number in range(200)),
    "/field": "<h1>Field</h1><input autofocus size=60>",
    "/spinner": _SPINNER.format(size=60),
    "/throbber": _SPINNER.format(size=10),
}


class Ready(NamedTuple):
    """All is prepared: the window that will get the input, and the action, as a batch takes it."""

    window: int
    action: dict[str, Any]


class Scenario(NamedTuple):
    """``what`` is the kind of action; ``prepare`` gets the hand and the pages' address; ``keys`` close what opens."""

    what: str
    prepare: Callable[[Hand, str], Ready]
    keys: tuple[str, ...] = ()

    def act(self, address: str) -> Act:
        """The steps that the recorder takes."""

        def steps(hand: Hand) -> Iterator[int]:
            ready = self.prepare(hand, address)
            yield ready.window
            _do(hand, ready.action)
            _LEFT.append((hand, self.keys))

        return steps

    def clean_up(self, hand: Hand) -> None:
        """Close what the action has opened."""
        for keys in self.keys:
            _close(hand, keys)


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
    """The window with ``word`` in its facts, launched when there is none; focused."""
    for _ in range(2):
        for window in hand.windows():
            if word in str(window).lower() and window["type"] != "desktop":
                _prepare(hand, {"action": "focus", "window": window["id"]})
                return window
        _prepare(hand, {"action": "launch", "app": application})
    raise DeskhandError(f"{application} shows no window with {word!r} in its facts: look what it is called now")


#: Hands on which a recorded action has left something open, and the keys that close it.
_LEFT: list[tuple[Hand, tuple[str, ...]]] = []


def tidy(hand: Hand) -> None:
    """Close what the last recorded action left, and leave nothing under the pointer that would show a tooltip."""
    while _LEFT:
        for keys in _LEFT.pop()[1]:
            _close(hand, keys)
    _prepare(hand, {"action": "move", "x": 1270, "y": 400})


def _close(hand: Hand, keys: str) -> None:
    with contextlib.suppress(DeskhandError):  # a menu may have closed with its submenu: nobody takes a key then
        _prepare(hand, {"action": "key", "keys": keys})


def _apps_menu(hand: Hand, _address: str) -> Ready:
    tidy(hand)
    _prepare(hand, {"action": "move", "x": 40, "y": 13})
    return Ready(_under(hand), {"action": "click", "x": 40, "y": 13})


def _submenu(hand: Hand, _address: str) -> Ready:
    """Move to the entry "Accessories" of the open menu of applications."""
    tidy(hand)
    _prepare(hand, {"action": "click", "x": 40, "y": 13})
    return Ready(_focus(hand), {"action": "move", "x": 65, "y": 171})


def _home_icon(hand: Hand, _address: str) -> Ready:
    """Return on the desktop's selected icon, which starts Thunar or has it open a window."""
    tidy(hand)
    with contextlib.suppress(DeskhandError):  # it would ask whether to save what other kinds have typed
        _prepare(hand, {"action": "quit", "app": "mousepad", "force": True})
    for window in hand.windows():
        if window["type"] not in ("desktop", "dock"):
            _prepare(hand, {"action": "close", "window": window["id"]})
    desktop = next(window["id"] for window in hand.windows() if window["type"] == "desktop")
    _prepare(hand, {"action": "click", "x": 69, "y": 290}, {"action": "move", "x": 1270, "y": 400})
    return Ready(int(desktop), {"action": "key", "keys": "Return"})


def _context_menu(hand: Hand, _address: str) -> Ready:
    tidy(hand)
    x, y, width, height = _window(hand, "thunar", "thunar")["rect"]
    return Ready(_under(hand), {"action": "click", "x": x + width - 90, "y": y + height - 90, "button": "right"})


def _type(word: str, application: str, text: str, hand: Hand, _address: str) -> Ready:
    tidy(hand)
    _window(hand, word, application)
    return Ready(_focus(hand), {"action": "type", "text": text})


def _key(word: str, application: str, keys: str, hand: Hand, _address: str) -> Ready:
    tidy(hand)
    _window(hand, word, application)
    return Ready(_focus(hand), {"action": "key", "keys": keys})


def _go_to(hand: Hand, address: str) -> None:
    """Have Firefox show a page, and nothing of it selected or under the pointer."""
    tidy(hand)
    _window(hand, "firefox", "firefox-esr")
    _prepare(
        hand,
        {"action": "key", "keys": "ctrl+l"},
        {"action": "type", "text": address},
        {"action": "key", "keys": "Return"},
        {"action": "wait", "seconds": 2},
    )


def _page(path: str, hand: Hand, address: str) -> Ready:
    tidy(hand)
    _window(hand, "firefox", "firefox-esr")
    _prepare(hand, {"action": "key", "keys": "ctrl+l"}, {"action": "type", "text": address + path})
    return Ready(_focus(hand), {"action": "key", "keys": "Return"})


def _on_page(path: str, action: dict[str, Any], hand: Hand, address: str) -> Ready:
    """An action on a page that is there; one with a pointer in the middle of its window."""
    _go_to(hand, address + path)
    x, y, width, height = _window(hand, "firefox", "firefox-esr")["rect"]
    if action["action"] in ("click", "scroll"):
        action = {**action, "x": x + width // 2, "y": y + height * 2 // 3}
    return Ready(_focus(hand), action)


_MOUSEPAD = ("mousepad", "mousepad")
_XTERM = ("xterm", "debian-xterm")
_FIREFOX = ("firefox", "firefox-esr")
_WORDS = {"action": "type", "text": "words"}
SCENARIOS = {
    "apps-menu": Scenario("click", _apps_menu, ("Escape",)),
    "submenu": Scenario("move", _submenu, ("Escape", "Escape")),
    "thunar-open": Scenario("key", _home_icon),
    "thunar-ctx": Scenario("click", _context_menu, ("Escape",)),
    "th-new": Scenario("key", functools.partial(_key, "thunar", "thunar", "ctrl+n"), ("ctrl+w",)),
    "mp-type": Scenario("type", functools.partial(_type, *_MOUSEPAD, "words ")),
    "mp-altf": Scenario("key", functools.partial(_key, *_MOUSEPAD, "alt+f"), ("Escape",)),
    "mp-open": Scenario("key", functools.partial(_key, *_MOUSEPAD, "ctrl+o"), ("Escape",)),
    "mp-replace": Scenario("key", functools.partial(_key, *_MOUSEPAD, "ctrl+h"), ("Escape",)),
    "xt-ls": Scenario("type", functools.partial(_type, *_XTERM, "ls /\n")),
    "xt-slow": Scenario("type", functools.partial(_type, *_XTERM, "sleep 0.7; ls /\n")),
    "xt-pause": Scenario("type", functools.partial(_type, *_XTERM, "ls /; sleep 0.5; ls /etc; sleep 0.5; date\n")),
    "ff-newtab": Scenario("key", functools.partial(_key, *_FIREFOX, "ctrl+t"), ("ctrl+w",)),
    "ff-ctrlO": Scenario("key", functools.partial(_key, *_FIREFOX, "ctrl+o"), ("Escape",)),
    "ff-noclick": Scenario("click", functools.partial(_on_page, "/static", {"action": "click"})),
    "ff-field": Scenario("type", functools.partial(_on_page, "/field", _WORDS)),
    "ff-static": Scenario("key", functools.partial(_page, "/static")),
    "ff-img600": Scenario("key", functools.partial(_page, "/late600")),
    "ff-img1500": Scenario("key", functools.partial(_page, "/late1500")),
    "ff-anim800": Scenario("key", functools.partial(_page, "/anim800")),
    "ff-later400": Scenario("key", functools.partial(_page, "/later400")),
    "ff-scroll": Scenario("scroll", functools.partial(_on_page, "/long", {"action": "scroll", "dy": 3})),
    "ff-spin-type": Scenario("type", functools.partial(_on_page, "/spinner", _WORDS)),
    "ff-throb-type": Scenario("type", functools.partial(_on_page, "/throbber", _WORDS)),
}
