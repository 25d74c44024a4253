"""The desktops that Harbor's step is measured on, and the actions on each.

``xfce``: an XFCE of this machine with Mousepad, Thunar, xterm and Firefox, and the kinds of action of ``bench.step``.
``browser``: what stock computer-1 starts for itself in a sandbox. ``terminal``: an xterm in a sandbox.
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from PIL import Image

from bench.settle.scenarios import SCENARIOS, pages
from bench.step import LEFT_OUT
from bench.step import shown as shown_on
from bench.step import xfce as xfce_desktop
from deskhand.hand.hand import Hand

Action = dict[str, Any]

#: Begins nothing: stock computer-1 starts its own Xvfb, XFCE and Chromium.
_NOTHING = "#!/bin/bash\nsleep infinity\n"
_PAGE = """<!DOCTYPE html><title>A form</title>
<style>body { margin: 0; font: 20px sans-serif }
input, button { display: block; width: 100%; height: 160px; font: inherit }
p { height: 60px; margin: 0; border-bottom: 1px solid #888; transition: background 0.2s }
p:hover { background: #fd8 }</style>
<input placeholder="Words"><button onclick="setTimeout(() => said.textContent = 'Saved.', 400)">Save</button>
<p id="said"></p><script>for (let n = 1; n < 60; n++) document.write(`<p>Line ${n}</p>`)</script>
"""
#: In Chromium, which fills the screen: the address, the page as it loads, a form, what is shown late, a menu.
_BROWSING: dict[str, Action] = {
    "address": {"type": "keypress", "keys": ["ctrl", "l"]},
    "type address": {"type": "type", "text": "file:///root/page.html"},
    "load": {"type": "keypress", "keys": ["Return"]},
    "click field": {"type": "click", "x": 500, "y": 200},
    "type words": {"type": "type", "text": "a few words"},
    "said 400 ms later": {"type": "click", "x": 500, "y": 350},
    "scroll": {"type": "scroll", "x": 500, "y": 600, "scroll_y": 300},
    "open menu": {"type": "right_click", "x": 500, "y": 600},
    "close menu": {"type": "keypress", "keys": ["Escape"]},
    "move": {"type": "mouse_move", "x": 500, "y": 700},
}
_TYPING: dict[str, Action] = {
    "click": {"type": "click", "x": 400, "y": 300},
    "type": {"type": "type", "text": "a few words"},
    "key": {"type": "keypress", "keys": ["Return"]},
    "move": {"type": "mouse_move", "x": 500, "y": 400},
}


@dataclass
class Desktop:
    """A desktop to measure on, and the environment of Harbor's that it runs in.

    Args:
        kinds: Brings the desktop to where the action makes sense, and gives it.
        read: A picture in the environment.
        shown: What the screen shows now; no exec of anybody's.
    """

    environment: Any
    kinds: dict[str, Callable[[], Action]]
    read: Callable[[str], Any]
    shown: Callable[[], Any]
    #: Settings that a session needs to find the display.
    settings: dict[str, str] = field(default_factory=dict)
    clean_up: Callable[[str], None] = lambda kind: None
    #: The kinds have no preparation: a way does all of them in a row.
    one_leads_to_the_next: bool = False
    #: Stock computer-1 has to start it.
    is_stocks: bool = False


@asynccontextmanager
async def terminal(place: Path) -> AsyncIterator[Desktop]:
    from tests.harbor.real import real_sandbox

    async with real_sandbox(place) as environment:
        yield _in_sandbox(environment, _TYPING)


@asynccontextmanager
async def browser(place: Path) -> AsyncIterator[Desktop]:
    from tests.harbor.real import real_sandbox

    async with real_sandbox(place, _NOTHING) as environment:
        (place / "page.html").write_text(_PAGE)
        await environment.upload_file(place / "page.html", "/root/page.html")
        desktop = _in_sandbox(environment, _BROWSING)
        desktop.is_stocks = True
        yield desktop


@asynccontextmanager
async def xfce(place: Path) -> AsyncIterator[Desktop]:
    with (
        xfce_desktop() as state,
        pages() as address,
        Hand(state.display, state.xauthority) as hand,
    ):

        def begin(kind: str) -> Callable[[], Action]:
            return lambda: harbors(SCENARIOS[kind].prepare(hand, address).action)

        async def read(path: str) -> Image.Image:
            return Image.open(io.BytesIO(Path(path).read_bytes()))

        async def shown() -> Image.Image:
            return shown_on(hand)

        yield Desktop(
            ThisMachine(place),
            {kind: begin(kind) for kind in SCENARIOS if kind not in LEFT_OUT},
            read,
            shown,
            {"display": state.display, "xauthority": state.xauthority},
            lambda kind: SCENARIOS[kind].clean_up(hand),
        )


DESKTOPS = {"terminal": terminal, "browser": browser, "xfce": xfce}


def _in_sandbox(environment: Any, actions: dict[str, Action]) -> Desktop:
    run = environment.exec  # before it is counted

    async def read(path: str) -> Image.Image:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "picture.png"
            await environment.download_file(path, file)
            return Image.open(io.BytesIO(file.read_bytes()))

    async def shown() -> Image.Image:
        await run(command="DISPLAY=:1 import -window root png24:/tmp/later.png")
        return await read("/tmp/later.png")

    def begin(action: Action) -> Callable[[], Action]:
        return lambda: action

    kinds = {kind: begin(action) for kind, action in actions.items()}
    return Desktop(environment, kinds, read, shown, one_leads_to_the_next=True)


class ThisMachine:
    """Harbor's environment as far as a session uses it, whose commands run here."""

    default_user: str | None = None

    def __init__(self, place: Path) -> None:
        self.trial_paths = SimpleNamespace(agent_dir=place / "trial" / "agent")
        self.trial_paths.agent_dir.mkdir(parents=True)

    async def exec(self, command: str, timeout_sec: int | None = None, **_: Any) -> Any:
        from harbor.environments.base import ExecResult

        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name not in ("DISPLAY", "XAUTHORITY")},
        )
        try:
            out, errors = await asyncio.wait_for(process.communicate(), timeout_sec)
        finally:
            if process.returncode is None:
                process.kill()
        return ExecResult(stdout=out.decode(), stderr=errors.decode(), return_code=process.returncode or 0)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await asyncio.to_thread(shutil.copy, source_path, target_path)


def harbors(action: Action) -> Action:
    """The hand's action as Harbor's ``ComputerAction`` has it."""
    kind = action["action"]
    place: Action = {name: action[name] for name in ("x", "y") if name in action}
    if kind == "click":
        named = {1: "click", 2: "double_click", 3: "triple_click"}[action.get("count", 1)]
        return {"type": "right_click" if action.get("button") == "right" else named, **place}
    if kind == "move":
        return {"type": "mouse_move", **place}
    if kind == "scroll":
        return {"type": "scroll", **place, "scroll_y": 100 * action["dy"]}
    if kind == "key":
        return {"type": "keypress", "keys": action["keys"].split("+")}
    return {"type": "type", "text": action["text"]}
