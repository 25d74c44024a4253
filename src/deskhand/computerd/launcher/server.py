"""The launcher's socket: one request in, one JSON line out. Standard library, and the hand.

A request is one line of raw UTF-8, at most 1,100 bytes; every answer is one JSON object a line with ``ok``::

    list            {"ok": true, "apps": [{"id", "name", "path"}], "searched": [directory]}
    find NAME       {"ok": true, "id", "name", "path", "exec", "wm_class"}
    launch NAME     {"ok": true, "pid", "startup_id", "mark", "keeper", "exit", ...}, and again whenever that changes
    launched        {"ok": true, "launches": [{"id", "name", "keeper", "mark", "running", "pids"}]}
    kill NAME       {"ok": true, "ended": 2, "left": [pid]}
    anything else   {"ok": false, "kind", "error", "facts"}

``NAME`` is an application's id or name, never a path or a command line (``kill`` takes the ``mark`` of one launch too).
``launch`` ends when the peer closes its end: it then says the last line, with the application's last words, and the
application goes on. A connection that sends nothing and closes is neither answered nor logged.
"""

from __future__ import annotations

import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from ...hand import applications, state
from ...hand.errors import DeskhandError, DisplayLost, NoDisplay, SetupError, Unsupported, in_one_line
from ...hand.launched_process import Exit, without_bus
from ...hand.launcher import Launching
from ...hand.launches import KILL_PATIENCE
from ...hand.own_launcher import OwnLauncher
from ...hand.x11 import Connection
from .peer import LONGEST_REQUEST, Answer, Gone, Peer, Refused

#: Connections at a time: of the account that is served, and of all others, who are only told that they are not.
MOST_PEERS, MOST_STRANGERS = 32, 4
#: Seconds a launch is followed at most: the longest a hand waits for a window, and some.
LONGEST_LAUNCH = 75.0
#: Seconds between being told to end and being killed, twice over; not the peer's to choose.
_KILL_TIMEOUT = 5.0
#: The session name in the records of what was launched here: ``kill`` ends nothing else.
SESSION = "launcher"
#: An Exec line beyond this is not told: it only helps to know a window by its program.
_LONGEST_EXEC = 4096
#: What went wrong, in a word, the particular before the general; ``client`` makes the same errors of it again.
KINDS: dict[str, tuple[type[Exception], ...]] = {
    "unknown": (applications.UnknownApplication,),
    "ambiguous": (applications.AmbiguousApplication,),
    "invalid": (applications.ApplicationError,),
    "unsupported": (Unsupported,),
    "no_display": (NoDisplay, DisplayLost),
    "setup": (SetupError,),
    "failed": (DeskhandError,),
}


def parse(line: bytes) -> tuple[str, str]:
    """The verb and the name (``""`` for none) of a request, its newline taken off.

    Raises:
        Refused: it is too long, not UTF-8, or nothing in the table.
        ApplicationError: the name can not be one.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"the request is not UTF-8 at byte {error.start}: send raw UTF-8") from None
    verb, space, name = text.partition(" ")
    request = REQUESTS.get(verb)
    if request is None or bool(space) != request.takes_name:
        known = ", ".join(f"'{one} NAME'" if REQUESTS[one].takes_name else f"'{one}'" for one in REQUESTS)
        raise Refused(f"there is no such request: send one line, {known}")
    if len(line) >= request.limit:
        raise Refused(f"the request is longer than {request.limit} bytes: send one name of at most 255 characters")
    if request.takes_name:
        applications.check_name(name)
    return verb, name


# ---- what is asked for


def _list(launcher: OwnLauncher, _name: str, _peer: Peer) -> Answer:
    return launcher.listing()


def _find(launcher: OwnLauncher, name: str, _peer: Peer) -> Answer:
    entry = launcher.find(name)
    exec_line = entry.exec if entry.exec is not None and len(entry.exec) <= _LONGEST_EXEC else None
    return {**entry.as_dict(), "exec": exec_line, "wm_class": entry.startup_wm_class}


def _launch(launcher: OwnLauncher, name: str, peer: Peer) -> Answer:
    entry = launcher.find(name)
    launching = launcher.start(entry, session=SESSION)
    deadline = time.monotonic() + LONGEST_LAUNCH
    told: Answer = {}
    try:
        while True:
            launching.read()
            facts = _facts(launching)
            if facts != told and (facts["pid"] or facts["failed"] or facts["over"]):
                peer.send({"ok": True, **facts})
                told = facts
            poll = select.poll()
            poll.register(peer, select.POLLIN)
            if launching.fileno() >= 0:
                poll.register(launching.fileno(), select.POLLIN)
            ready = dict(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
            if not ready or (peer.fileno() in ready and peer.has_closed()):
                break
        launching.read()
        return {**_facts(launching), "last_words": launching.last_words()}
    finally:
        try:
            # Asked for whether it is over or not: it may be over before the record is written.
            window = launcher.window_of(launching.mark)
            if window is not None:
                launching.complete(window.id)
        finally:
            launching.close()


def _facts(launching: Launching) -> Answer:
    over = launching.over
    return {
        "pid": launching.pid,
        "startup_id": launching.startup_id,
        "startup_time": launching.startup_time,
        "mark": launching.mark,
        "keeper": launching.keeper,
        "opener": launching.opener,
        "program": launching.program,
        "direct": launching.direct,
        "note": launching.note,
        "failed": launching.error,
        "exit": _exit(launching.opener_exit),
        "failure": _exit(launching.failure),
        "over": over,
        "last_words": launching.last_words() if over or launching.ended_badly else "",
    }


def _exit(one: Exit | None) -> list[int] | None:
    return None if one is None else list(one)


def _launched(launcher: OwnLauncher, _name: str, _peer: Peer) -> Answer:
    found = [launch for launch in launcher.launches() if launch.may_be_ended_by(SESSION)]
    rows = []
    for launch in found:
        pids = launch.processes()
        row = {"id": launch.id, "name": launch.name, "keeper": launch.keeper, "mark": launch.mark}
        rows.append({**row, "running": bool(without_bus(pids)), "pids": sorted(pids)})
    return {"launches": rows}


def _kill(launcher: OwnLauncher, name: str, _peer: Peer) -> Answer:
    asked = name.casefold()
    ended, left = 0, set[int]()
    for launch in launcher.launches():
        names = (launch.id.casefold(), launch.name.casefold(), launch.mark)
        if asked not in names or not launch.may_be_ended_by(SESSION):
            continue
        ended += launch.end(_KILL_TIMEOUT)
        if launch.alive:
            left |= launch.processes()
        else:
            launch.forget()
    return {"ended": ended, "left": sorted(left)}


class Request(NamedTuple):
    """``limit`` is in bytes, the newline included."""

    takes_name: bool
    limit: int
    handler: Callable[[OwnLauncher, str, Peer], Answer]


#: Everything there is to ask for.
REQUESTS = {
    "list": Request(False, 5, _list),
    "find": Request(True, LONGEST_REQUEST, _find),
    "launch": Request(True, LONGEST_REQUEST, _launch),
    "launched": Request(False, 9, _launched),
    "kill": Request(True, LONGEST_REQUEST, _kill),
}
_BARE = [verb.encode() for verb, request in REQUESTS.items() if not request.takes_name]
#: What is noted in the log, beside all refusals: computerd looks often, and does little.
_LOGGED = ("launch ", "kill ")
#: Seconds ``kill`` may take for one launch.
LONGEST_KILL = _KILL_TIMEOUT + KILL_PATIENCE


# ---- serving


class Server:
    """Answers on ``listener`` whom ``serve_uid`` names, each connection in a thread of its own, until ``stop``."""

    def __init__(self, listener: socket.socket, serve_uid: int, display: str, xauthority: str | None = None) -> None:
        self._listener = listener
        self._serve_uid = serve_uid
        self._display = display
        self._xauthority = xauthority
        self._peers = threading.BoundedSemaphore(MOST_PEERS)
        self._strangers = threading.BoundedSemaphore(MOST_STRANGERS)
        self._stopping = threading.Event()

    def serve(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
                peer = Peer(connection)
            except OSError:
                self._stopping.wait(0.1)  # too many open files: some will close
                continue
            places = self._peers if peer.uid == self._serve_uid else self._strangers
            if not places.acquire(blocking=False):
                connection.close()
                continue
            try:
                threading.Thread(target=self._serve_one, args=(connection, peer, places), daemon=True).start()
            except RuntimeError:  # the account has as many processes as it may
                connection.close()
                places.release()

    def stop(self) -> None:
        """Accept nobody more; ``serve`` ends. What was launched goes on."""
        self._stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)

    def _serve_one(self, connection: socket.socket, peer: Peer, places: threading.BoundedSemaphore) -> None:
        try:
            with connection:
                self._answer(peer)
        except Gone:
            pass
        finally:
            places.release()

    def _answer(self, peer: Peer) -> None:
        asked = "no request"
        try:
            # The request is read before its sender is refused, who would get EPIPE and no sentence.
            line = peer.request(_BARE)
            if peer.uid != self._serve_uid:
                raise Refused(f"this launcher serves the uid {self._serve_uid} only, not {peer.uid}")
            verb, name = parse(line)
            asked = f"{verb} {name!a}" if name else verb
            answer = {"ok": True, **self._carry_out(verb, name, peer)}
        except Gone:
            raise
        except Exception as error:
            kind = next((kind for kind, of in KINDS.items() if isinstance(error, of)), "fault")
            kind, sentence = ("refused", str(error)) if isinstance(error, Refused) else (kind, in_one_line(error))
            answer = {"ok": False, "kind": kind, "error": sentence, "facts": getattr(error, "facts", {})}
        if not answer["ok"] or asked.startswith(_LOGGED):
            answered = answer.get("error") or (f"pid {answer['pid']}" if "pid" in answer else "done")
            print(f"launcher: {asked} of uid {peer.uid}: {answered}", file=sys.stderr, flush=True)
        peer.send(answer)

    def _carry_out(self, verb: str, name: str, peer: Peer) -> Answer:
        # A connection to the display for each: none is lost with a server that starts again.
        desktop = state.find_desktop(self._display)
        xauthority = self._xauthority or (str(desktop["xauthority"]) if desktop is not None else None)
        with Connection.open(self._display, xauthority) as conn:
            return REQUESTS[verb].handler(OwnLauncher(conn, self._display, xauthority), name, peer)
