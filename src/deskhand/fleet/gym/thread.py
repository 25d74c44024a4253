"""An event loop in a thread of its own, for those who call without one; leases are renewed there meanwhile."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="deskhand-gym", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` comes to. Interrupted (Ctrl+C), it is cancelled, and has ended before this raises."""
        told: concurrent.futures.Future[T] = concurrent.futures.Future()
        begun: concurrent.futures.Future[asyncio.Task[None]] = concurrent.futures.Future()
        self._loop.call_soon_threadsafe(lambda: begun.set_result(self._loop.create_task(_told(work, told))))
        try:
            return told.result()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(begun.result().cancel)
            concurrent.futures.wait([told])
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _told(work: Coroutine[Any, Any, T], told: concurrent.futures.Future[T]) -> None:
    try:
        value = await work
    except Exception as error:  # raised where it was asked for; a task that fails as well would be reported here
        told.set_exception(error)
    except BaseException as error:
        told.set_exception(error)
        raise
    else:
        told.set_result(value)
