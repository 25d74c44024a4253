"""A pretend desktop for tests of agents: no X server, no time spent, and everything that was done can be asked for.

::

    desktop = Memory(apps=["Text Editor"])
    async with Session(desktop) as session:
        ...  # the agent under test
    assert desktop.windows_open[-1].text == "hello"
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.backends.pretend import PretendDesktop, PretendWindow
from deskhand.errors import ActionFailed, DeskhandError
from deskhand.hand import applications
from deskhand.hand.envelope import PictureWish, parse_batch
from deskhand.hand.picture import MAX_BYTES, MAX_EDGE, make_picture
from deskhand.hand.preflight import Prepared, prepare
from deskhand.hand.screen import Region

#: These send nothing and change nothing on the screen.
_LOOKING = ("wait", "wait_window", "cursor_position", "screenshot", "zoom", "clipboard_get")


class Memory(Backend):
    """A desktop that exists only in this process; batches are checked as the real hand checks them.

    Every application is one window, which shows what is typed into it; waiting takes no time. What needs an X server
    (layouts, drags in between, settling, focus that a window manager withholds) is not pretended.

    Args:
        size: Of the screen, in pixels.
        apps: The names of the applications that can be launched.
    """

    def __init__(self, size: tuple[int, int] = (1280, 800), apps: Sequence[str] = ("Text Editor", "Terminal")) -> None:
        self.desktop = PretendDesktop(size)
        #: Every action that was carried out, as it was asked for, in order.
        self.actions: list[dict[str, Any]] = []
        #: Errors for the next batches to raise instead of being run, the first one first.
        self.errors: list[DeskhandError] = []
        self._apps = tuple(apps)
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._newest: int | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    @property
    def windows_open(self) -> list[PretendWindow]:
        """From the bottom; the last one is active."""
        return self.desktop.windows

    @property
    def held(self) -> list[str]:
        """The keys and buttons that are down."""
        return list(self.desktop.held)

    async def info(self) -> dict[str, Any]:
        self._check_open()
        width, height = self.desktop.size
        monitor = {"name": "memory", "x": 0, "y": 0, "width": width, "height": height, "primary": True}
        return {
            "display": "memory",
            "size": [width, height],
            "depth": 24,
            "monitors": [monitor],
            "window_manager": "memory",
            "server": "deskhand",
        }

    async def act(self, batch: Envelope) -> Outcome:
        self._check_open()
        async with self._turn:
            if self.errors:
                raise self.errors.pop(0)
            prepared = prepare(parse_batch(dict(batch)), self.desktop.size, self._newest, self._environment())
            try:
                return await self._run(batch, prepared)
            except asyncio.CancelledError:
                self.desktop.release_all()
                raise

    async def apps(self) -> list[dict[str, str]]:
        self._check_open()
        return [entry.as_dict() for entry in applications.list_applications(self._environment())]

    async def windows(self) -> list[dict[str, Any]]:
        self._check_open()
        active = self.desktop.active
        return [window.facts(window is active) for window in self.desktop.windows]

    async def aclose(self) -> None:
        self._closed = True
        self.desktop.release_all()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    async def _run(self, batch: Envelope, prepared: Prepared) -> Outcome:
        results: list[dict[str, Any]] = [{"action": step.action.action, "status": "skipped"} for step in prepared.steps]
        region, wish, sent, released = prepared.region, prepared.batch.picture, False, []
        for step, asked, result in zip(prepared.steps, batch["actions"], results, strict=True):
            await asyncio.sleep(0)  # where a batch can be cancelled
            name = step.action.action
            try:
                result.update(self.desktop.perform(step, prepared.batch.expect.window), status="ok")
            except ActionFailed as error:
                result.update(error.facts, status="failed", error=str(error))
                released = self.desktop.release_all()
                sent = sent or (error.sent != "none" and name not in _LOOKING)
                break
            self.actions.append(dict(asked))
            sent = sent or name not in _LOOKING
            if name in ("zoom", "screenshot"):
                region, wish = step.region, wish or PictureWish()
        ok = all(result["status"] == "ok" for result in results)
        settled = sent and prepared.batch.settle.mode == "quiet"
        answer: dict[str, Any] = {
            "ok": ok,
            "sent": "all" if ok else "part" if sent else "none",
            "results": results,
            "settled": True,
            "settle": "settled" if settled else "none",
            "settle_ms": 0,
            "moving": [],
        }
        if released:
            answer["released"] = released
        return self._with_picture(answer, wish, region)

    def _with_picture(self, answer: dict[str, Any], wish: PictureWish | None, region: Region | None) -> Outcome:
        if wish is None:
            return Outcome(answer)
        self._newest = (self._newest or 0) + 1
        taken = self.desktop.picture(region)
        picture = make_picture(taken, self._newest, wish.format, min(wish.max_edge or MAX_EDGE, MAX_EDGE), MAX_BYTES)
        return Outcome({**answer, "picture": picture.facts()}, picture.content)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this backend is closed")

    def _environment(self) -> dict[str, str]:
        """An environment with these applications and no others: the real lookup finds and refuses them."""
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="deskhand-memory-")
            folder = Path(self._directory.name) / "applications"
            folder.mkdir()
            for number, name in enumerate(self._apps):
                id = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or f"app-{number}"
                words = name.replace("\\", "\\\\")
                entry = f"[Desktop Entry]\nType=Application\nName={words}\nExec=true\n"
                (folder / f"{id}.desktop").write_text(entry, "utf-8")
        home = self._directory.name
        return {
            "HOME": home,
            "XDG_DATA_HOME": home,
            "XDG_DATA_DIRS": home,
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
        }
