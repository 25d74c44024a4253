"""The clipboard: text of the CLIPBOARD selection (ICCCM, section 2; freedesktop.org, Clipboards)."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from typing import Dict, List, Optional

from .clipboard_owner import READY
from .errors import ActionFailed
from .x11 import Connection, Event, core

SELECTION = "CLIPBOARD"
#: Seconds the owner of the clipboard may take to answer, and for each piece of a long text.
PATIENCE = 3.0
#: Bytes of text that are taken at most.
LONGEST = 64 << 20
#: Seconds that all pieces of a long text may take together: an owner that goes on for ever keeps nobody.
WHOLE_SECONDS = 30.0
_START_SECONDS = 10.0
#: The forms a text is asked for, in this order.
_TEXT_FORMS = ("UTF8_STRING", "text/plain;charset=utf-8", "STRING", "TEXT")
#: Variables the owner's process keeps: where cookies are, and which desktop it belongs to.
_KEPT = ("HOME", "DESKHAND_DESKTOP")
_BOOT = (
    "import sys, importlib; sys.path.insert(0, sys.argv[1]);"
    " sys.exit(importlib.import_module(sys.argv[2]).main(*sys.argv[3:]))"
)


def get_text(conn: Connection, timeout: float = PATIENCE, selection: str = SELECTION) -> Optional[str]:
    """The clipboard's text; None when it is empty or holds no text. ``timeout`` seconds for each answer of its owner.

    Raises:
        ActionFailed: the owner of the clipboard does not answer.
    """
    if not core.get_selection_owner(conn, conn.atom(selection)):
        return None
    reader = _Reader(conn, selection, timeout)
    try:
        # Some owners answer with what they have, whatever is asked for; what they offer tells a picture from a text.
        offered = core.Property(core.ATOM_ATOM, 32, reader.convert("TARGETS") or b"").cardinals()
        for target in _TEXT_FORMS:
            if offered and conn.atom(target) not in offered:
                continue
            value = reader.convert(target)
            if value is not None:
                return _decoded(value)
        return None
    finally:
        reader.close()


def get_targets(conn: Connection, timeout: float = PATIENCE, selection: str = SELECTION) -> List[str]:
    """The forms the clipboard's owner offers (ICCCM, 2.6.2, TARGETS); none when it is empty."""
    if not core.get_selection_owner(conn, conn.atom(selection)):
        return []
    reader = _Reader(conn, selection, timeout)
    try:
        value = reader.convert("TARGETS") or b""
    finally:
        reader.close()
    return [conn.atom_name(atom) for atom in core.Property(core.ATOM_ATOM, 32, value).cardinals()]


def set_text(conn: Connection, text: str, xauthority: Optional[str] = None) -> Dict[str, object]:
    """Put text on the clipboard. A process of its own goes on offering it, until another client takes the clipboard.

    ``xauthority`` is the cookie file to use (None: the one ``conn`` was opened with). The text goes to the process over
    a pipe and stands in no argument list. The answer: ``owner``, the window that owns the clipboard now.

    Raises:
        ActionFailed: the process did not start, or did not get the clipboard.
    """
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        where = f"character {error.start + 1} of the text is half of a surrogate pair"
        raise ActionFailed(f"{where}: send whole characters") from None
    package = (__package__ or "deskhand.hand").split(".")
    root = os.path.abspath(__file__)
    for _ in range(len(package) + 1):
        root = os.path.dirname(root)  # a folder, or the one-file archive
    module = ".".join([*package, "clipboard_owner"])
    screen = f".{conn.name.screen}" if conn.name.screen else ""
    command = [sys.executable or "python3", "-I", "-S", "-c", _BOOT, root, module, f"{conn.name}{screen}"]
    cookies = xauthority or conn.xauthority
    if cookies:
        command.append(os.path.abspath(cookies))
    environment = {name: os.environ[name] for name in (*_KEPT, "XAUTHORITY") if name in os.environ}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise ActionFailed(f"the process that keeps the clipboard did not start: {error.strerror}") from None
    said = _hand_over(process, content)
    if said != READY:
        why = said.decode("utf-8", "replace").strip() or "it said nothing"
        raise ActionFailed(f"the text is not on the clipboard: {why}")
    return {"owner": core.get_selection_owner(conn, conn.atom(SELECTION))}


def _decoded(value: bytes) -> str:
    """What is valid UTF-8 is UTF-8: xsel answers with it as STRING, which should be Latin-1 (ICCCM, 2.6.2)."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _hand_over(process: "subprocess.Popen[bytes]", content: bytes) -> bytes:
    """Write the text to the owner's process and read what it says until it closes its end."""
    assert process.stdin is not None
    assert process.stdout is not None
    deadline = time.monotonic() + _START_SECONDS
    said = b""
    at = 0
    os.set_blocking(process.stdin.fileno(), False)
    try:
        while True:
            writers = [process.stdin] if not process.stdin.closed else []
            ready = select.select([process.stdout], writers, [], max(0.0, deadline - time.monotonic()))
            if not any(ready):
                process.kill()
                return b"it took too long"
            if ready[1]:
                try:
                    at += os.write(process.stdin.fileno(), content[at : at + (1 << 16)])
                except BrokenPipeError:
                    at = len(content)  # it has ended; what it said tells why
                if at >= len(content):
                    process.stdin.close()
            if ready[0]:
                piece = os.read(process.stdout.fileno(), 4096)
                if not piece:
                    break
                said += piece
        return said
    finally:
        if not process.stdin.closed:
            process.stdin.close()
        process.stdout.close()
        # What we started ends at once: the owner is its child by now, and somebody else's to bury.
        process.wait()


class _Reader:
    """Asks a selection's owner for one form after another."""

    def __init__(self, conn: Connection, selection: str, timeout: float) -> None:
        self._conn = conn
        self._timeout = timeout
        self._selection, self._incr, self._property = conn.atoms([selection, "INCR", "_DESKHAND_SELECTION"])
        self._window = core.create_window(conn, event_mask=core.PROPERTY_CHANGE)
        self._time = core.server_time(conn)
        self._answers: List[Event] = []
        self._pieces = 0
        self._subscription = conn.subscribe(self._take)

    def close(self) -> None:
        self._subscription.end()
        core.destroy_window(self._conn, self._window)

    def convert(self, target: str) -> Optional[bytes]:
        """The selection as ``target``; None when the owner has it not."""
        conn = self._conn
        wanted = conn.atom(target)
        self._answers.clear()
        core.convert_selection(conn, self._window, self._selection, wanted, self._property, self._time)
        if not conn.wait(lambda: any(event["target"] == wanted for event in self._answers), self._timeout):
            raise self._silent()
        if not self._answers[-1]["property"]:
            return None
        self._pieces = 0
        found = core.get_property(conn, self._window, self._property, delete=True)
        if found.type != self._incr:
            return found.value
        # ICCCM, 2.7.2: each piece comes when the one before it has been deleted, and an empty one ends it.
        parts: List[bytes] = []
        deadline = time.monotonic() + WHOLE_SECONDS
        while True:
            if not conn.wait(lambda: self._pieces > 0, self._timeout):
                raise self._silent()
            if time.monotonic() > deadline:
                raise ActionFailed(
                    f"the owner of the clipboard was not done with its text after {WHOLE_SECONDS:g} s: it was not read"
                )
            self._pieces -= 1
            found = core.get_property(conn, self._window, self._property, delete=True)
            if not found.type:
                continue  # the news of a deletion of ours, counted before
            if not found.value:
                return b"".join(parts)
            parts.append(found.value)
            if sum(map(len, parts)) > LONGEST:
                raise ActionFailed(f"the clipboard holds more than {LONGEST >> 20} MiB of text: it was not read")

    def _take(self, event: Event) -> None:
        if event.name == "SelectionNotify" and event["requestor"] == self._window:
            self._answers.append(event)
        elif event.name == "PropertyNotify" and event["window"] == self._window and event["atom"] == self._property:
            self._pieces += event["state"] == 0  # a new value

    def _silent(self) -> ActionFailed:
        owner = core.get_selection_owner(self._conn, self._selection)
        return ActionFailed(
            f"the owner of the clipboard (window {owner}) did not answer within {self._timeout:g} s: it may hang"
        )
