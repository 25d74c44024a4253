"""The process that owns one desktop: ``python -m deskhand.desktop.supervisor SPECIFICATION``.

It starts the parts in order and proves each, says so on standard output (one JSON line: ``ready``, or ``failed``
with the part and the tail of its log), and then waits: for SIGTERM, or for the end of a part without which the
desktop is none. Either way it ends everything that the desktop started. It is a subreaper (prctl(2)), so that every
orphan of the desktop becomes its child and is reaped.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any, NoReturn

from ..hand import state as states
from ..hand.errors import DeskhandError
from ..hand.x11 import Connection
from . import home, processes, remains, system_bus, xserver
from .account import Account
from .inside import Inside
from .logs import Logs
from .parts import SETTINGS, PartFailed, Parts
from .readiness import Readiness
from .sandbox import Isolation, Sandbox
from .services import Services, Serving
from .sessions import SESSIONS

_PR_SET_CHILD_SUBREAPER = 36
_LOG_LOOK = 60.0
#: Seconds a session gets to end by itself before its processes are killed.
_POLITE = 3.0
#: Seconds to see whether another part has ended too, when one has.
_LAST_WORDS = 0.3

_GSETTINGS = (
    ("org.gnome.desktop.interface", "enable-animations", "false"),
    ("org.gnome.desktop.screensaver", "lock-enabled", "false"),
    ("org.gnome.desktop.screensaver", "idle-activation-enabled", "false"),
)


class Stopped(Exception):
    """We were asked to stop, or whoever started us went away before the desktop was up."""


class Supervisor:
    """One desktop, from nothing to nothing."""

    def __init__(self, specification: dict[str, Any]) -> None:
        self._account = Account(**specification["account"])
        self._session = SESSIONS[specification["session"]]
        self._directory: str = specification["directory"]
        self._timeout = float(specification["timeout"])
        self._deadline = time.monotonic() + self._timeout
        self._changes: dict[str, str] = specification["environment"]
        self._base: str = specification["state_directory"]
        serve, isolation = specification.get("serve"), specification.get("isolation")
        width, height = specification["size"]
        self._state: dict[str, Any] = {
            "display": "",
            "xauthority": os.path.join(self._directory, "Xauthority"),
            "session": specification["session"],
            "size": [width, height],
            "user": self._account.name,
            "uid": self._account.uid,
            "gid": self._account.gid,
            "home": os.path.join(self._directory, "home"),
            "runtime_dir": os.path.join(self._directory, "run"),
            "dbus_address": "",
            "current_desktop": "",
            "env": {},
            "id": specification["id"],
            "processes": {"supervisor": [os.getpid(), states.process_start_time(os.getpid())]},
            "directory": self._directory,
            "logs": os.path.join(self._directory, "logs"),
            "started": time.time(),
            "state": "starting",
            "reason": "",
            "url": "",
            "token_file": "",
            "launcher": "",
            "isolation": isolation,
        }
        self._env: dict[str, str] = {}
        self._logs = Logs(self._state["logs"], bool(specification.get("console")))
        confined = bool(specification.get("confined"))
        self._parts = Parts(
            self._account, self._state["home"], self._logs, confined, self._state["processes"], self._look
        )
        self._services = Services(Serving.of(serve), self._account, self._parts.start_service) if serve else None
        sandbox = Sandbox(Isolation.of(isolation), self._account, self._directory) if isolation else None
        self._inside = Inside(sandbox, self._account, self._parts, self._line_from) if sandbox else None
        self._stopping = False
        self._ready = False
        self._signals, self._signal_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> int:
        """Bring the desktop up, keep it, end it; the exit status."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._take_signals()
        # systemd-tmpfiles leaves alone what is locked: a desktop may live longer than files in /tmp are kept.
        lock = os.open(os.path.dirname(self._directory), os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        try:
            self._bring_up()
            self._set_state("ready")
            if self._services is not None:
                self._services.prepare(self._state["display"], self._state["xauthority"], self._env)
                self._services.bring_up(self._wait, self._left)
                serving = self._services.serving
                self._state.update(url=serving.url, token_file=serving.token_file)
                self._state["processes"].update(self._services.processes)
                self._set_state("ready")
            self._report({"ready": self._state["state_file"]})
            self._keep()
        except (PartFailed, OSError) as error:
            failure = error if isinstance(error, PartFailed) else PartFailed("supervisor", error.strerror or str(error))
            with contextlib.suppress(OSError):
                print(f"the desktop ends: {failure}", file=sys.stderr, flush=True)
            tail = self._logs.tail(failure.part)
            if self._ready:
                # Its files stay for whoever wants to know why, until `down` or the next start.
                self._end(failure.why if failure.part in failure.why else str(failure))
                return 1
            self._end()
            self._report({"failed": failure.part, "why": failure.why, "log": tail})
            return 1
        except Stopped:
            self._end()
        return 0

    # ---- coming up

    def _bring_up(self) -> None:
        home.make_home(self._directory, self._account, self._state["session"])
        self._env = home.session_environment(self._directory, self._account, self._state["session"])
        self._env.update(self._changes)
        self._env[states.MARK] = self._state["id"]
        self._parts.environment = self._env
        self._start_xserver()
        if self._session.own_system_bus:
            self._start_system_bus()
        if self._inside is not None:
            self._state["processes"]["namespaces"] = self._inside.make(self._state["display"])
        self._start_bus()
        self._state["current_desktop"] = self._env.get("XDG_CURRENT_DESKTOP", "")
        self._state["env"] = dict(self._env)
        self._set_state("starting")
        # Before the session starts: what it shows first should be what it goes on showing.
        for command in [["gsettings", "set", *setting] for setting in (*_GSETTINGS, *self._session.gsettings)]:
            self._parts.start_aside(command)
        for aside in self._session.asides:
            self._parts.start_aside(list(aside))
        self._wait(lambda: not self._parts.runs(SETTINGS), (), self._left())
        self._parts.start("session", list(self._session.command))
        if self._inside is not None:
            self._inside.start_launcher()
        self._prove_session()
        if self._inside is not None:
            self._state["launcher"] = self._inside.prove_launcher(self._wait, self._left)

    def _start_xserver(self) -> None:
        xserver.make_socket_directories()
        leftovers = xserver.find_leftovers()
        cookie = xserver.new_cookie()
        owner = (self._account.uid, self._account.gid) if self._account.switch else None
        path = self._state["xauthority"]
        xserver.write_xauthority(path, cookie, None, owner)
        width, height = self._state["size"]
        reader, writer = os.pipe2(os.O_CLOEXEC)
        try:
            self._parts.start("X server", xserver.xvfb_command(width, height, 24, writer, path), pass_fds=(writer,))
        finally:
            os.close(writer)
        number = self._line_from(reader, "X server", "it gave no display number").strip()
        os.close(reader)
        self._state["display"] = f":{int(number)}"
        # In a sandbox the display has a second number.
        xserver.write_xauthority(path, cookie, int(number) if self._inside is None else None, owner)
        xserver.clear_leftovers(leftovers)
        for other in states.read_desktops([self._base]):
            if other["display"] == self._state["display"]:
                remains.remove_files(other)  # dead for certain: its display is ours now
        self._env["DISPLAY"] = self._state["display"]
        self._env["XAUTHORITY"] = path

    def _start_bus(self) -> None:
        address = f"unix:path={self._state['runtime_dir']}/bus"
        # Services that the bus starts take their environment from it.
        self._env["DBUS_SESSION_BUS_ADDRESS"] = address
        given = self._start_message_bus("session bus", "--session", f"--address={address}")
        self._state["dbus_address"] = self._env["DBUS_SESSION_BUS_ADDRESS"] = given

    def _start_system_bus(self) -> None:
        path = os.path.join(self._directory, "system-bus.conf")
        system_bus.write_configuration(path, f"unix:path={self._state['runtime_dir']}/system_bus")
        self._env["DBUS_SYSTEM_BUS_ADDRESS"] = self._start_message_bus("system bus", f"--config-file={path}")

    def _start_message_bus(self, part: str, *options: str) -> str:
        """Start a dbus-daemon(1) and give its address."""
        reader, writer = os.pipe2(os.O_CLOEXEC)
        command = ["dbus-daemon", "--nofork", "--nopidfile", *options]
        try:
            self._parts.start(part, [*command, f"--print-address={writer}"], pass_fds=(writer,))
        finally:
            os.close(writer)
        given = self._line_from(reader, part, "it gave no address").strip()
        os.close(reader)
        return given

    def _prove_session(self) -> None:
        try:
            timeout = max(1.0, self._left())
            with Connection.open(self._state["display"], self._state["xauthority"], timeout) as connection:
                readiness = Readiness(connection, self._look, (self._signals, sys.stdout.fileno()))
                missing = readiness.missing_of(self._session, self._left)
                if missing:
                    raise PartFailed("session", f"{missing} within {self._timeout:g} s")
        except DeskhandError as error:
            self._look()
            raise PartFailed("X server", str(error)) from None

    # ---- serving it

    def _look_after(self, services: Services, ended: Mapping[int, int]) -> None:
        services.take_notices()
        lines = services.ended(ended)
        if not self._ready or self._stopping:
            return  # `bring_up` tells; and one that was asked to end is not started again
        started = services.start_the_due()
        if started:
            self._state["processes"].update(services.processes)
            try:
                self._set_state("ready")
            except OSError as error:  # a full disk is no reason to end the desktop
                started.append(f"the state file can not be written: {error.strerror}")
        for line in (*lines, *started):
            with contextlib.suppress(OSError):
                print(line, file=sys.stderr, flush=True)

    # ---- waiting

    def _line_from(self, descriptor: int, part: str, otherwise: str) -> str:
        """The line that a part writes to a pipe when it is up."""
        os.set_blocking(descriptor, False)
        text = b""

        def read() -> bool:
            nonlocal text
            try:
                piece = os.read(descriptor, 4096)
            except BlockingIOError:
                return False
            text += piece
            return b"\n" in text or not piece

        if not self._wait(read, (descriptor,), self._left()):
            raise PartFailed(part, f"{otherwise} within {self._timeout:g} s")
        if b"\n" not in text:  # it closed the pipe: most likely it ended, and its exit status says more
            self._wait(lambda: False, (), min(1.0, self._left()))
            raise PartFailed(part, otherwise)
        return text.decode()

    def _take_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        # The handler does nothing; without one the kernel would not wake us.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        signal.set_wakeup_fd(self._signal_writer, warn_on_full_buffer=False)

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _look(self) -> None:
        """Take in signals and exit statuses; raise when the desktop must end."""
        try:
            while os.read(self._signals, 4096):
                pass
        except BlockingIOError:
            pass
        ended = processes.reap()
        self._parts.ended(ended)
        if self._services is not None:
            self._look_after(self._services, ended)
        if self._stopping or (not self._ready and self._starter_is_gone()):
            raise Stopped
        if self._inside is not None and not self._stopping:
            self._inside.ended(ended)
        if self._parts.lost(ended) is not None:
            # Parts die of each other: a client may be gone before its X server, which closes its sockets first.
            select.select([self._signals], [], [], _LAST_WORDS)
            ended.update(processes.reap())
        failure = self._parts.lost(ended)
        if failure is not None:
            raise failure

    def _starter_is_gone(self) -> bool:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(flags & (select.POLLERR | select.POLLHUP) for _, flags in poll.poll(0))

    def _wait(self, condition: Any, descriptors: tuple[int, ...], timeout: float) -> bool:
        """Wait until ``condition()``, which is looked at whenever a descriptor can be read or a signal came."""
        deadline = time.monotonic() + timeout
        poll = select.poll()
        for descriptor in (self._signals, *descriptors, *(() if self._ready else (sys.stdout.fileno(),))):
            poll.register(descriptor, 0 if descriptor == sys.stdout.fileno() else select.POLLIN)
        while True:
            self._look()
            if condition():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._services is not None:
                left = self._services.until_due(left)  # `_look` starts what is due then
            poll.poll(int(left * 1000) + 1)

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _keep(self) -> NoReturn:
        """Live until told to stop, or until a part ends without which the desktop is none."""
        while True:
            self._wait(lambda: False, (), _LOG_LOOK)
            self._logs.cut()

    # ---- what others see

    def _report(self, message: dict[str, Any]) -> None:
        self._ready = "ready" in message
        try:
            print(json.dumps(message), flush=True)
        except OSError:
            if self._ready:
                raise Stopped from None
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, sys.stdout.fileno())
        os.close(quiet)

    def _set_state(self, state: str, reason: str = "") -> None:
        self._state.update(state=state, reason=reason)
        self._state["state_file"] = states.write_desktop(self._base, self._state)

    # ---- ending

    def _end(self, reason: str = "") -> None:
        """End every process: the session politely, then the X server and the bus; remove what they leave.

        With a ``reason`` the files stay, and the state file says it; without one nothing stays.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
        if self._state["display"]:
            with contextlib.suppress(OSError):  # whatever can not be written, the processes are ended
                self._set_state("stopping", reason)
        mark, own = self._state["id"], self._state["processes"]
        roots = [(pid, start_time) for pid, start_time in own.values() if start_time is not None]
        last = [own[part][0] for part in ("X server", "session bus") if part in own]
        ended = processes.end_processes(mark, roots, spare=last, polite=_POLITE, reaping=True)
        then = processes.end_processes(mark, roots, polite=_POLITE, reaping=True)
        remains.remove_sockets_and_memory(self._state, ended.pids | then.pids)
        if reason:
            with contextlib.suppress(OSError):
                self._set_state("dead", reason)
        else:
            remains.remove_files(self._state)


def main() -> int:
    return Supervisor(json.loads(sys.argv[1])).run()


if __name__ == "__main__":
    sys.exit(main())
