"""One viewer's WebSocket: what is sent, and what it says.

The server sends turns, each one binary message: four bytes (big endian) with the length of a JSON object, the object,
and the images it lists, one after the other::

    {"turn": 7, "images": [[x, y, width, height, "png", bytes], ...], "state": {...}, "outcomes": [...], ...}

``state`` holds only what has changed. The viewer answers ``{"ack": 7}`` once it has drawn it, and only then is the
next turn made, of what is so by then: who is slow is sent less, waits for nobody and makes nobody wait. Nothing is sent
while nothing changes.

With control the viewer also says ``{"take": true}``, ``{"give_back": true}`` and ``{"act": [actions], "id": n}``,
which is answered in a turn with ``{"did": [{"id": n, "error": "..."}]}``. ``{"watching": false}``: nobody looks at the
page, so it needs no pictures.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import time
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from deskhand.computerd.live.audience import KEPT, Audience, now
from deskhand.computerd.live.frames import EVERY
from deskhand.computerd.live.tickets import Viewer
from deskhand.computerd.live.updates import Piece, View

#: Seconds in which a viewer takes up a turn and says so; then it is dropped, and may come again.
PATIENCE = 30.0
#: Characters of a message of a viewer's, and messages that wait until they are done.
LONGEST_MESSAGE, MOST_WAITING = 256 * 1024, 64
#: Why the server ends a connection (RFC 6455, section 7.4.2: 4000 to 4999 are an application's own).
OVER, SLOW, MISUSED, FULL, NOT_ALLOWED = 4401, 4408, 4400, 4429, 4403


class Closing(Exception):
    """The connection is to end, and why."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Stream:
    """What goes over the socket of the viewer with this number."""

    def __init__(
        self, audience: Audience, socket: WebSocket, who: Viewer, number: int, patience: float = PATIENCE
    ) -> None:
        self._audience = audience
        self._socket = socket
        self._who = who
        self._number = number
        self._patience = patience
        self._control = audience.control if who.control else None
        self._view = View()
        self._state: dict[str, Any] = {}
        self._outcome = audience.first_outcome()  # the number of the last one told
        self._turn = 0
        self._acked = asyncio.Event()
        self._woken = asyncio.Event()
        self._watching = True
        self._did: list[dict[str, Any]] = []
        self._asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MOST_WAITING)

    async def run(self) -> None:
        """Show and listen, until the viewer leaves, is too slow, or may not watch any longer."""
        await self._socket.accept()
        if self._audience.full:
            await self._socket.close(FULL, "too many watch already: try again later")
            return
        leave = self._audience.join(self._woken.set)
        tasks = [asyncio.create_task(work()) for work in (self._show, self._read, self._do, self._until_over)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                if isinstance(error, Closing):
                    with contextlib.suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
                        async with asyncio.timeout(1.0):  # who takes up nothing takes up no close either
                            await self._socket.close(error.code, str(error)[:120])
                elif error is not None and not isinstance(error, (WebSocketDisconnect, OSError)):
                    raise error
        finally:
            for task in tasks:
                task.cancel()
            leave()
            if self._control is not None:
                await self._control.give_back(self._number)

    # -- what is sent -----------------------------------------------------------------------------------------------

    async def _show(self) -> None:
        while True:
            await self._news()
            began = time.monotonic()
            turn, pieces = await self._make_turn()
            self._turn += 1
            self._acked.clear()
            message = _encoded({"turn": self._turn, **turn}, pieces)
            try:
                async with asyncio.timeout(self._patience):
                    await self._socket.send_bytes(message)
                    await self._acked.wait()
            except TimeoutError:
                raise Closing(SLOW, f"a turn was not taken up within {self._patience:g} s") from None
            await asyncio.sleep(max(0.0, began + EVERY - time.monotonic()))  # at most ten a second

    async def _news(self) -> None:
        """Return when there is something to send."""
        while True:
            self._woken.clear()
            due = self._due()
            if due is not None and due <= time.monotonic():
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if due is None else due - time.monotonic()):
                    await self._woken.wait()

    def _due(self) -> float | None:
        if not self._turn or self._did or self._new_state() or self._audience.outcomes_since(self._outcome):
            return 0.0
        frame = self._audience.frames.seen.frame
        return self._view.due(frame) if frame is not None and self._watching else None

    async def _make_turn(self) -> tuple[dict[str, Any], list[Piece]]:
        turn: dict[str, Any] = {}
        if not self._turn:
            turn["hello"] = {"now": now(), "you": self._number, "may_take_over": self._control is not None}
            turn["hello"].update(display=self._audience.display, kept=KEPT)
        state = self._new_state()
        if state:
            turn["state"] = state
            self._state.update(state)
        outcomes = self._audience.outcomes_since(self._outcome)
        if outcomes:
            turn["outcomes"] = outcomes
            self._outcome = outcomes[-1]["n"]
        if self._did:
            turn["did"], self._did = self._did, []
        pieces: list[Piece] = []
        frame = self._audience.frames.seen.frame
        if frame is not None and self._watching:
            loop = asyncio.get_running_loop()
            audience = self._audience
            pieces = await loop.run_in_executor(audience.encoding, self._view.update, frame, audience.encoder)
            if pieces:
                turn["of"] = list(frame.size)
        return turn, pieces

    def _new_state(self) -> dict[str, Any]:
        state = self._audience.state()
        control = self._audience.control
        state["control"] = None if control is None or control.holder is None else control.holder
        return {name: value for name, value in state.items() if name not in self._state or self._state[name] != value}

    # -- what is said -----------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1005))
            self._take(message.get("text"))

    def _take(self, text: str | None) -> None:
        if text is None or len(text) > LONGEST_MESSAGE:
            raise Closing(MISUSED, "a viewer says JSON, and not so much of it")
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise Closing(MISUSED, "a viewer says JSON objects")
        if "ack" in said:
            if said["ack"] != self._turn:
                raise Closing(MISUSED, "that turn was not sent last")
            self._acked.set()
        elif "watching" in said:
            self._watching = said["watching"] is not False
            self._woken.set()
        elif self._control is None:
            # Whatever the page shows: who may not act is not listened to.
            raise Closing(NOT_ALLOWED, "this view only shows: nobody may take over here")
        else:
            try:
                self._asked.put_nowait(said)
            except asyncio.QueueFull:
                raise Closing(MISUSED, "too much was asked at once") from None

    async def _do(self) -> None:
        """Do what is asked, in order."""
        while True:
            said = await self._asked.get()
            assert self._control is not None
            error: str | None
            if said.get("take") is True:
                error = await self._control.take(self._number)
            elif said.get("give_back") is True:
                await self._control.give_back(self._number)
                error = None
            elif "act" in said:
                error = await self._control.act(self._number, said["act"])
            else:
                raise Closing(MISUSED, "a viewer says take, give_back or act")
            number = said.get("id")
            self._did.append({"id": number if isinstance(number, int) else None, "error": error})
            self._woken.set()

    async def _until_over(self) -> None:
        await asyncio.sleep(max(0.0, self._who.until - time.time()))
        raise Closing(OVER, "the time of this view is over: open a new one with deskhand view")


def _encoded(turn: dict[str, Any], pieces: list[Piece]) -> bytes:
    if pieces:
        turn["images"] = [[*piece.rect, piece.format, len(piece.content)] for piece in pieces]
    said = json.dumps(turn, separators=(",", ":")).encode()  # half a surrogate pair is told as an escape
    return b"".join([struct.pack(">I", len(said)), said, *(piece.content for piece in pieces)])
