"""The keeper: the small process that starts one application, and reaps whatever it leaves, until nothing is left.

``launched_process`` starts it with the source of this file, so it imports nothing of the package. It makes itself a
subreaper (prctl(2), PR_SET_CHILD_SUBREAPER): an opener exits and its children are orphaned, and here they come back to
their keeper, which so sees an early death and answers, by being their ancestor, what belongs to one launch. It outlives
the process that asked for the launch, and ends when its last child has.

Standard input holds one JSON object: ``argv``, ``env``, ``directory`` (in these three a character is a byte),
``account`` (null, or uid, gid and groups to become), ``report`` (a descriptor). Standard output is the log that the
application's output goes to. One JSON object a line goes to ``report``::

    {"event": "started", "pid": 4242}
    {"event": "failed", "error": "No such file or directory"}
    {"event": "exited", "pid": 4242, "status": 9, "signal": 0}
    {"event": "empty"}
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import signal
import sys
import time
from typing import Any, Dict, List, Optional

#: Bytes of output kept: once there is more, the older part goes.
LOG_LIMIT = 256 * 1024
#: Seconds between two looks at a log that is being written: a chatty application must not keep its keeper busy.
_LOG_PAUSE = 0.2
_PR_SET_CHILD_SUBREAPER = 36
_IN_MODIFY = 2
_LOG = 1


def main() -> None:
    order = json.load(sys.stdin)
    report = _Report(order["report"])
    libc = _libc()
    _reset_signals()
    if order["account"] is not None:
        uid, gid, groups = order["account"]
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
    os.umask(0o022)
    if libc is not None:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    wakeup = _wake_up_on_children()
    error, pid = _start(order["argv"], order["env"], order["directory"])
    # The application holds the log as its error output; ours must not mix with it.
    os.dup2(null, 2)
    os.close(null)
    os.chdir("/")
    if error is not None:
        report.send(event="failed", error=error)
    else:
        report.send(event="started", pid=pid)
    _keep(wakeup, _watch_log(libc), report)


def _libc() -> Optional[Any]:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
        libc.inotify_add_watch.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
        return libc
    except (OSError, AttributeError):
        return None


def _reset_signals() -> None:
    """Default handlers and an empty mask, whatever our parent had: they are inherited over exec (signal(7))."""
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                pass
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _wake_up_on_children() -> int:
    """A descriptor that can be read when a child has ended."""
    # A keeper told to end while its application runs would leave orphans; it ends when they do.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    receive, send = os.pipe()
    os.set_blocking(receive, False)
    os.set_blocking(send, False)
    signal.set_wakeup_fd(send, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return receive


def _start(argv: List[str], env: Dict[str, str], directory: str) -> Any:
    """Run ``argv`` in a session of its own. Gives what went wrong (None: nothing) and the pid."""
    receive, send = os.pipe()  # closed by exec: silence means that it worked
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            _reset_signals()
            os.setsid()
            try:
                os.chdir(_bytes(directory))
            except OSError:
                os.chdir("/")
            os.dup2(_LOG, 2)
            arguments = [_bytes(argument) for argument in argv]
            os.execvpe(arguments[0], arguments, {_bytes(name): _bytes(value) for name, value in env.items()})
        except OSError as failure:
            os.write(send, (failure.strerror or str(failure)).encode())
        except BaseException as failure:
            os.write(send, repr(failure).encode())
        finally:
            os._exit(127)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        error = pipe.read().decode("utf-8", "replace")
    return error or None, pid


def _bytes(text: str) -> bytes:
    """What stands for bytes in the order, whatever the locale of either side."""
    return text.encode("latin-1")


def _watch_log(libc: Optional[Any]) -> int:
    """An inotify descriptor that can be read when the log was written to; -1 when there is none."""
    if libc is None:
        return -1
    descriptor = int(libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    if descriptor >= 0 and libc.inotify_add_watch(descriptor, b"/proc/self/fd/%d" % _LOG, _IN_MODIFY) < 0:
        os.close(descriptor)
        return -1
    return descriptor


def _keep(wakeup: int, log_written: int, report: "_Report") -> None:
    """Reap and bound the log until no child is left."""
    not_before = 0.0
    while True:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                report.send(event="empty")
                return
            if pid == 0:
                break
            ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            report.send(event="exited", pid=pid, status=0 if ended_by else os.WEXITSTATUS(status), signal=ended_by)
        pause = not_before - time.monotonic()
        poll = select.poll()
        poll.register(wakeup, select.POLLIN)
        if log_written >= 0 and pause <= 0:
            poll.register(log_written, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(int(pause * 1000) + 1 if pause > 0 else None)]
        if wakeup in ready:
            _empty(wakeup)
        if log_written in ready:
            bound_log(_LOG)
            _empty(log_written)  # after it: what we wrote ourselves is no news
            not_before = time.monotonic() + _LOG_PAUSE


def _empty(descriptor: int) -> None:
    try:
        while os.read(descriptor, 65536):
            pass
    except BlockingIOError:
        pass


def bound_log(descriptor: int) -> None:
    """Drop the older part of a log that has grown over ``LOG_LIMIT``, keeping whole lines of its end.

    The application writes to the same file meanwhile (opened to append, so that it goes on at the new end); a line it
    writes in this very moment may be lost, which is better than a full disk.
    """
    try:
        size = os.fstat(descriptor).st_size
        if size <= LOG_LIMIT:
            return
        tail = os.pread(descriptor, LOG_LIMIT // 4, size - LOG_LIMIT // 4)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, tail[tail.find(b"\n") + 1 :])
    except OSError:
        pass


class _Report:
    """Tells the process that asked for the launch, as long as it listens."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.set_inheritable(descriptor, False)
        os.set_blocking(descriptor, False)

    def send(self, **event: Any) -> None:
        if self._descriptor < 0:
            return
        try:
            os.write(self._descriptor, json.dumps(event).encode() + b"\n")
        except BlockingIOError:
            pass  # nobody reads any more, but the pipe is still held: not worth waiting for
        except OSError as error:
            if error.errno == errno.EPIPE:
                os.close(self._descriptor)
                self._descriptor = -1


if __name__ == "__main__":
    main()
