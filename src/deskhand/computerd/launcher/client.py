"""computerd's end of the launcher's socket: a launcher for the hand, whose processes are another account's.

The desktop's account owns the socket's directory and so could put something else in its place: every answer is bounded,
waited for with a deadline, and checked field by field. What it says never decides more than which of the desktop's
windows are a launch's.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...hand import applications, launched_process
from ...hand.applications import Entry
from ...hand.errors import ActionFailed, DeskhandError, NoDisplay, SetupError, Unsupported
from ...hand.launched_process import Exit
from ...hand.launcher import Launch, Launcher, Launching
from ...hand.launches import wait_for_end
from ...hand.window_properties import Window
from .fields import Fields, NotAnAnswer
from .server import LONGEST_KILL

T = TypeVar("T")
#: Bytes of an answer at most.
_LONGEST_ANSWER, _LONGEST_LISTING = 1 << 18, 1 << 24
#: Seconds until there is a connection, and until an answer is whole.
_CONNECT, _ANSWER, _LAUNCH, _PROBE = 2.0, 15.0, 25.0, 0.5
#: Seconds for the last line, with the application's last words.
_LAST = 1.0
_MOST_APPS, _MOST_LAUNCHES, _MOST_PIDS, _MOST_DIRECTORIES = 20000, 2000, 20000, 1000


class LauncherClient(Launcher):
    """The launcher that listens at ``path``. A connection for each request, so any thread may ask."""

    quits_only_its_own = True

    def __init__(self, path: str) -> None:
        self.path = path

    def connects(self) -> bool:
        """Whether somebody listens there. Nothing is asked, and the launcher takes no notice."""
        try:
            self._connect(_PROBE).close()
        except SetupError:
            return False
        return True

    def listing(self) -> dict[str, Any]:
        answer = self._ask("list", _ANSWER, _LONGEST_LISTING)
        return self._checked(
            lambda: {
                "apps": [
                    {"id": row.text("id"), "name": row.text("name"), "path": row.text("path")}
                    for row in answer.rows("apps", _MOST_APPS)
                ],
                "searched": answer.texts("searched", _MOST_DIRECTORIES),
            }
        )

    def find(self, name: str) -> Entry:
        applications.check_name(name)
        answer = self._ask(f"find {name}", _ANSWER)

        def entry() -> Entry:
            values = {}
            exec_line, wm_class = answer.text_or_none("exec"), answer.text_or_none("wm_class")
            if exec_line is not None:
                values["Exec"] = exec_line
            if wm_class is not None:
                values["StartupWMClass"] = wm_class.replace("\\", "\\\\")
            return Entry(answer.text("id"), answer.text("path"), answer.text("name"), values, True, True)

        found = self._checked(entry)
        applications.check_name(found.id)
        return found

    def start(self, entry: Entry, keep_open: bool = False, session: str | None = None) -> Launching:
        applications.check_name(entry.id)
        connection = self._connect(_CONNECT)
        try:
            return _FollowedLaunching(self, connection, self._request(connection, f"launch {entry.id}", _LAUNCH))
        except SetupError as error:
            connection.close()
            if error.sent == "none":
                raise
            raise ActionFailed(
                f"{entry.name} may have been started: {error}; look at the screen before launching it again"
            ) from None
        except BaseException:
            connection.close()
            raise

    def launches(self) -> list[Launch]:
        return list(self.remembered())

    def remembered(self) -> list[_LauncherLaunch]:
        """What was launched there and of which something is left."""
        answer = self._ask("launched", _ANSWER)
        rows = self._checked(
            lambda: [
                (row.text("id"), row.text("name"), row.pid("keeper"), row.mark("mark"), row.flag("running"), row.pids())
                for row in answer.rows("launches", _MOST_LAUNCHES)
            ]
        )
        return [_LauncherLaunch(self, *row) for row in rows]

    def kill(self, mark: str) -> int:
        """End the processes of one launch by force; gives how many there were."""
        answer = self._ask(f"kill {mark}", LONGEST_KILL + _ANSWER)
        return self._checked(lambda: answer.number("ended", 0, _MOST_PIDS))

    def _ask(self, request: str, timeout: float, most: int = _LONGEST_ANSWER) -> Fields:
        with self._connect(_CONNECT) as connection:
            return self._request(connection, request, timeout, most)

    def _connect(self, timeout: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        try:
            connection.connect(self.path)
        except (OSError, ValueError) as error:
            connection.close()
            why = getattr(error, "strerror", None) or str(error)
            sentence = f"the launcher does not answer at {self.path} ({why}): start it (deskhand launcher)"
            raise SetupError(sentence) from None
        return connection

    def _request(self, connection: socket.socket, request: str, timeout: float, most: int = _LONGEST_ANSWER) -> Fields:
        """The first line of the answer.

        Raises:
            SetupError: there was none that can be used; ``sent`` "unknown" when the request had gone out.
            ApplicationError, DeskhandError: the launcher's own word.
        """
        deadline = time.monotonic() + timeout
        data = b""
        try:
            connection.settimeout(timeout)
            connection.sendall(request.encode() + b"\n")
            while b"\n" not in data:
                if len(data) > most:
                    raise self._lost(f"answered with more than {most} bytes")
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                piece = connection.recv(1 << 16)
                if not piece:
                    raise self._lost("ended before it answered")
                data += piece
        except TimeoutError:
            raise self._lost(f"did not answer within {timeout:g} s") from None
        except OSError as error:
            raise self._lost(f"ended before it answered ({error.strerror or error})") from None
        try:
            answer = Fields.of(data.partition(b"\n")[0])
            refusal = None if answer.flag("ok") else _error(answer)
        except NotAnAnswer as error:
            raise self._lost(str(error)) from None
        if refusal is not None:
            raise refusal
        return answer

    def _checked(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except NotAnAnswer as error:
            raise self._lost(str(error)) from None

    def _lost(self, what: str) -> SetupError:
        error = SetupError(f"the launcher at {self.path} {what}: see its log, and start it again (deskhand launcher)")
        error.sent = "unknown"
        return error


def _error(answer: Fields) -> Exception:
    """The error that the launcher tells of, as the class that would have been raised here."""
    kind, sentence = answer.text("kind"), answer.sentence("error")
    facts = answer.fields("facts")
    if kind == "unknown":
        near = [{"id": row.text("id"), "name": row.text("name")} for row in facts.rows("near", 3)]
        return applications.UnknownApplication(sentence, near)
    if kind == "ambiguous":
        return applications.AmbiguousApplication(sentence, facts.texts("ids", _MOST_APPS))
    if kind == "invalid":
        return applications.InvalidName(sentence)
    made = {"unsupported": Unsupported, "no_display": NoDisplay, "failed": ActionFailed}.get(kind, SetupError)
    error: DeskhandError = made(sentence)
    error.sent = "none"
    return error


class _FollowedLaunching(Launching):
    """A launch whose process side is told over a connection, the whole state in each line."""

    def __init__(self, launcher: LauncherClient, connection: socket.socket, first: Fields) -> None:
        self._launcher = launcher
        self._connection = connection
        self._buffer = b""
        self._asked_last = False
        try:
            self.startup_id = first.text("startup_id")
            self.startup_time = first.number("startup_time", 0, 2**32 - 1)
            self.mark = first.mark("mark")
            self._take(first)
        except NotAnAnswer as error:
            raise launcher._lost(str(error)) from None
        connection.setblocking(False)
        self._open = True

    def _take(self, facts: Fields) -> None:
        # All is read before anything is believed.
        state = (facts.pid("keeper"), facts.text("opener"), facts.text("program"), facts.flag("direct"))
        words, over = facts.sentence("last_words"), facts.flag("over")
        note, failed = facts.text_or_none("note"), facts.text_or_none("failed")
        pid = facts.pid("pid") if facts.has("pid") else None
        exits = [Exit(*numbers) if numbers else None for numbers in (facts.exit("exit"), facts.exit("failure"))]
        self.keeper, self.opener, self.program, self.direct = state
        self._last_words, self._over, self.note, self.error, self.pid = words, over, note, failed, pid
        self._exit, self._failure = exits

    @property
    def opener_exit(self) -> Exit | None:
        return self._exit

    @property
    def failure(self) -> Exit | None:
        return self._failure

    @property
    def over(self) -> bool:
        return self._over

    def fileno(self) -> int:
        return self._connection.fileno() if self._open else -1

    def read(self) -> None:
        while self._open:
            try:
                piece = self._connection.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError:
                piece = b""
            self._buffer += piece
            if not piece or len(self._buffer) > _LONGEST_ANSWER:
                self._open = False  # the launcher is gone; the application may well be there
        *lines, self._buffer = self._buffer.split(b"\n")
        if lines:
            try:
                self._take(Fields.of(lines[-1]))
            except NotAnAnswer:
                self._open = False

    def last_words(self) -> str:
        if not self._last_words:
            self._ask_for_the_last()
            self._await_the_last()
        return self._last_words

    def owns(self, pids: Sequence[int]) -> bool:
        if any(self.keeper in launched_process.ancestors(pid) for pid in pids):
            return True
        # Where other accounts' processes are hidden (proc(5), hidepid) the launcher is asked.
        hidden = {pid for pid in pids if not os.path.exists(f"/proc/{pid}")}
        return bool(hidden) and any(launch.mark == self.mark and hidden & launch.known for launch in self._others())

    def is_of_another(self, pids: Sequence[int]) -> bool:
        return any(launch.mark != self.mark and set(pids) & launch.known for launch in self._others())

    def _others(self) -> list[_LauncherLaunch]:
        try:
            return self._launcher.remembered()
        except SetupError:
            return []  # it is gone; the windows' names are left to tell

    def complete(self, window: int) -> None:
        # The mark on the window tells the launcher of it.
        self._ask_for_the_last()

    def _ask_for_the_last(self) -> None:
        """Close our end: no other way is taken to open it, and the last line comes."""
        if self._open and not self._asked_last:
            self._asked_last = True
            try:
                self._connection.shutdown(socket.SHUT_WR)
            except OSError:
                self._open = False

    def _await_the_last(self) -> None:
        deadline = time.monotonic() + _LAST
        while self._open and time.monotonic() < deadline:
            select.select([self._connection], [], [], max(0.0, deadline - time.monotonic()))
            self.read()

    def close(self) -> None:
        if self._asked_last:
            self._await_the_last()  # the launcher's record is written before it: who quits it next finds it
        self._open = False
        self._connection.close()


class _LauncherLaunch(Launch):
    """A launch of earlier. ``known`` are its processes when it was asked for."""

    def __init__(
        self, launcher: LauncherClient, id: str, name: str, keeper: int, mark: str, running: bool, pids: set[int]
    ) -> None:
        self._launcher = launcher
        self.id = id
        self.name = name
        self.keeper = keeper
        self.mark = mark
        self.running = running
        self.known = pids

    def _now(self) -> _LauncherLaunch | None:
        return next((one for one in self._launcher.remembered() if one.mark == self.mark), None)

    @property
    def alive(self) -> bool:
        now = self._now()
        return now is not None and now.running

    def owns(self, window: Window) -> bool:
        return window.launch_mark == self.mark or bool(self.known & set(window.pids))

    def processes(self) -> set[int]:
        now = self._now()
        return now.known if now is not None else set()

    def may_be_ended_by(self, session: str | None) -> bool:
        return True

    def wait(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            now = self._now()
            if now is None or not now.running:
                break
            wait_for_end(now.known, deadline - time.monotonic(), every=False)

    def end(self, timeout: float) -> int:
        return self._launcher.kill(self.mark)

    def forget(self) -> None:
        """The launcher does, when nothing is left of it."""
