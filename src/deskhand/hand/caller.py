"""Whoever waits for our answer: does it still?

A transport that is cut (``ssh``, ``docker exec``) does not end what it had started, so the hand looks for itself: the
far end of its standard output is closed, or, in a stream, that of its standard input (poll(2), POLLERR and POLLHUP).
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import Callable, Iterator, Optional

from .errors import DeskhandError, DisplayLost, SetupError
from .hand import Hand

#: Seconds a batch that nobody waits for has to come to its next action, before its connection is cut.
GRACE = 0.5
_PIECE = 1 << 16


class Caller:
    """The far end of ``stdout``, and of ``stdin`` where requests come for as long as it is open; None: not looked at.

    ``longest`` is how many bytes of a request are kept while another is carried out. With ``silence`` it counts as gone
    when nothing came on ``stdin`` for so many seconds: for a transport that leaves the pipes open when it is cut.
    ``cut`` is called, from another thread, when what it asked for must not be waited for any longer.
    """

    def __init__(
        self,
        hand: Hand,
        stdin: Optional[int],
        stdout: Optional[int],
        longest: int = 0,
        silence: Optional[float] = None,
        cut: Optional[Callable[[], None]] = None,
    ) -> None:
        self._silence = silence
        self._heard = time.monotonic()
        self._cut = cut or hand.cut
        self._stdin = stdin
        self._stdout = stdout
        self._longest = longest
        #: What was read of the requests to come.
        self.buffer = bytearray()
        self.gone = False

    def waits(self) -> bool:
        """Whether the answer is still wanted."""
        return not self.gone

    def heard(self) -> None:
        """Something has come on standard input."""
        self._heard = time.monotonic()

    def patience(self) -> Optional[float]:
        """Seconds of silence after which it counts as gone; None: it may be silent for ever."""
        if self._silence is None:
            return None
        return max(0.0, self._heard + self._silence - time.monotonic())

    def leave(self) -> None:
        """As if it had gone: a signal says that we are to end. The connection is cut, so that nothing waits for it."""
        self.gone = True
        self._cut()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Inside, ``waits`` turns false when it goes; a batch that does not see that in time loses its connection.

        Raises:
            SetupError: on entering, when no thread can be started to watch; nothing was sent.
        """
        wake, waker = os.pipe()
        # A thread, as a single action may wait for a minute without looking.
        thread = threading.Thread(target=self._watch, args=(wake,), daemon=True)
        try:
            thread.start()
        except RuntimeError:
            os.close(waker)
            os.close(wake)
            raise SetupError(
                "no thread can be started to watch whether anybody waits for the answer: the account has as many"
                " processes as it may; end some, or raise the limit (ulimit -u)"
            ) from None
        try:
            yield
        finally:
            os.close(waker)
            thread.join()
            os.close(wake)

    def _watch(self, wake: int) -> None:
        poll = select.poll()
        poll.register(wake, 0)
        if self._stdout is not None:
            poll.register(self._stdout, 0)
        if self._stdin is not None:
            poll.register(self._stdin, select.POLLIN)
        while not self.gone:
            left = self.patience()
            ready = poll.poll(None if left is None else left * 1000)
            if not ready and self.patience() == 0.0:
                self.gone = True
            for descriptor, _bits in ready:
                if descriptor == wake:
                    return
                if descriptor == self._stdout or not self._read():
                    self.gone = True
                elif len(self.buffer) > self._longest:
                    poll.unregister(descriptor)
                    self._silence = None  # it is not listened to any more
        rest = select.poll()
        rest.register(wake, 0)
        if not rest.poll(GRACE * 1000):
            self._cut()

    def _read(self) -> bool:
        """Take in what has come on standard input; false at its end."""
        assert self._stdin is not None
        try:
            data = os.read(self._stdin, _PIECE)
        except OSError:
            return False
        self.buffer += data
        self.heard()
        return bool(data)


def release(hand: Hand) -> None:
    """Release what the hand holds, over a new connection when its own was cut."""
    try:
        if hand.connected:
            try:
                hand.display.ledger.release_all()
                return
            except DisplayLost:
                pass  # it was cut just now
        hand.abandon()
    except DeskhandError:
        pass  # the display is gone, and what was held on it
