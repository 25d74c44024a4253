"""The stock of a host: desktops that are ready or on their way, as many as are to be there, and the end of those that
were given back.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from deskhand.errors import DeskhandError, SetupError
from deskhand.fleet import fingerprint
from deskhand.fleet.making import DesktopMaker, Made, Maker, end_desktop, orphans, own_mark
from deskhand.fleet.options import Options
from deskhand.fleet.record import Record
from deskhand.fleet.warden import Warden
from deskhand.hand.state import is_alive

#: Seconds before a desktop that did not come up is tried again: at first, and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
#: Desktops that may be ending besides those that are up.
_ENDING = 8


class Stock:
    """That of the host ``name``; for one event loop.

    Args:
        options: How many desktops there are to be, and what they are like.
        name: The host's.
        maker: What makes and ends them; None: ``deskhand.desktop``, and they end with this process also when it is
            killed.
        record: Told what happens.
        leased: How many desktops are leased, which are in the stock no more.
        came: Called when one that was started is ready, or is not: what is ready can be given out.
        went: Called when one has ended.
        died: Called with a desktop that has lost a process without which it is none.
    """

    def __init__(
        self,
        options: Options,
        name: str,
        maker: Maker | None,
        record: Record,
        leased: Callable[[], int],
        came: Callable[[], None],
        went: Callable[[], None],
        died: Callable[[Made], None],
    ) -> None:
        self._options = options
        self._record = record
        self._leased = leased
        self._came = came
        self._went = went
        self._died = died
        self._mark = own_mark(f"{name}/{uuid.uuid4().hex[:8]}")
        self._own = maker is None
        most = options.size + options.spares + _ENDING
        self._maker = maker or DesktopMaker(
            options.session, options.screen, options.timeout, most, self._mark, options.apart
        )
        # Threads that live as long as the host: what a thread has started may ask to end with it (PDEATHSIG).
        starts = options.starts or os.cpu_count() or 1
        self._starts = ThreadPoolExecutor(starts, thread_name_prefix="deskhand-fleet-start")
        self._ends = ThreadPoolExecutor(starts, thread_name_prefix="deskhand-fleet-end")
        self._warden: Warden | None = None
        #: Those that are ready, the oldest first.
        self.ready: collections.deque[Made] = collections.deque()
        #: How many are on their way.
        self.coming = 0
        #: Why the last that was started, or ended, did not; None when it did.
        self.failure: DeskhandError | None = None
        #: How many in a row did not come up.
        self.in_a_row = 0
        #: What all desktops must be like.
        self.template = options.template
        self._templating = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: dict[str, list[int]] = {}
        self._closed = False
        self._pausing = False
        #: Whether a desktop did not end as it must: what is left of it is the warden's.
        self._left_over = False

    async def begin(self) -> None:
        """Have the first ones on their way, and end what hosts have left that were killed.

        Raises:
            SetupError: Such desktops can not be had here; says why.
        """
        if self._own:
            await asyncio.to_thread(self._options.check)
            self._warden = await asyncio.to_thread(Warden, self._mark)
            left = await asyncio.to_thread(orphans)
            self._record.counts.orphans += len(left)
            for facts in left:
                self._do(self._end_orphan(facts))
        self.fill()

    async def aclose(self) -> None:
        """End what is ready, and return when every desktop that was taken back has ended too."""
        self._closed = True
        while self.ready:
            self._do(self._end(self.ready.popleft()))
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        for threads in (self._starts, self._ends):
            threads.shutdown(wait=False)
        if self._warden is not None:
            if self._left_over:
                self._warden.take_over()
            else:
                self._warden.dismiss()

    def fill(self) -> None:
        """Have as many desktops on their way as are missing; a dead one that is leased is missing too."""
        if self._pausing or self._closed:
            return
        options = self._options
        while len(self.ready) + self._leased() + self.coming < options.size + options.spares:
            self.coming += 1
            self._do(self._make())

    def take_back(self, made: Made, first: Coroutine[Any, Any, None]) -> None:
        """End one that was leased, when ``first`` is over."""
        self._do(self._end_after(first, made))

    def lose(self, made: Made) -> None:
        """One has died: another takes its place, and it is ended unless it is leased, whose client is told first."""
        self._unwatch(made)
        if made in self.ready:
            self.ready.remove(made)
            self._do(self._end(made))
        self.fill()

    # -- making and ending --------------------------------------------------------------------------------------------

    async def _make(self) -> None:
        loop = asyncio.get_running_loop()
        made: Made | None = None
        unlike: list[str] = []
        number = self._record.starting()
        try:
            made = await loop.run_in_executor(self._starts, self._maker.make)
            self._record.counts.started += 1
            unlike = await self._unlike(made)
            if unlike:
                self._record.counts.refused += 1
                raise SetupError(f"a new desktop is not like the template, and was refused: {'; '.join(unlike[:3])}")
        except DeskhandError as error:
            self._record.counts.failed += 1
            self.failure = error
            self.in_a_row += 1
            self._record.failed(error, bool(unlike))
        except Exception as error:  # a fault of ours must not leave the host one desktop short for ever
            self.failure = SetupError(f"a fault in deskhand itself: {type(error).__name__}: {error}. Please report it")
            self.in_a_row += 1
            self._record.failed(self.failure, False)
        else:
            self._record.ready(made, self.in_a_row)
            self.in_a_row = 0
            self.failure = None
            if not self._closed:
                self._watch(made)
                self.ready.append(made)
                made = None
        finally:
            self._record.start_ended(number)
            self.coming -= 1
        if made is not None:
            self._do(self._end(made))
        if self.failure is not None and not self._closed:
            self._pause()
        self._came()

    def _pause(self) -> None:
        """Try again after a while, so that a machine that is full is not kept busy with failing."""
        if self._pausing:
            return
        self._pausing = True
        seconds = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self.in_a_row - 1, 8))

        def resume() -> None:
            self._pausing = False
            self.fill()

        asyncio.get_running_loop().call_later(seconds, resume)

    async def _unlike(self, made: Made) -> list[str]:
        async with self._templating:
            if self.template is None:
                self.template = await asyncio.to_thread(fingerprint.take_template, made)
                return []
        return await asyncio.to_thread(fingerprint.differences, made, self.template)

    def _watch(self, made: Made) -> None:
        """Be told when one of its processes ends."""
        loop = asyncio.get_running_loop()
        for pid, start_time in made.vital:
            try:
                descriptor = os.pidfd_open(pid)
            except OSError:
                continue  # found dead when it is to be given
            if not is_alive(pid, start_time):
                os.close(descriptor)
                continue
            self._watched.setdefault(made.id, []).append(descriptor)
            loop.add_reader(descriptor, self._died, made)

    def _unwatch(self, made: Made) -> None:
        for descriptor in self._watched.pop(made.id, []):
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)

    async def _end_after(self, first: Coroutine[Any, Any, None], made: Made) -> None:
        try:
            await first
        finally:
            await self._end(made)

    async def _end(self, made: Made) -> None:
        self._unwatch(made)
        self._record.ending(made)
        try:
            await asyncio.get_running_loop().run_in_executor(self._ends, self._maker.end, made)
        except DeskhandError as error:
            self.failure = error
            self._left_over = True
            self._record.gone(made, error)
        else:
            self._record.gone(made)
        self._went()

    async def _end_orphan(self, facts: dict[str, Any]) -> None:
        with contextlib.suppress(DeskhandError):
            await asyncio.get_running_loop().run_in_executor(self._ends, end_desktop, facts)

    def _do(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
