"""The part of the conformance suite about leases: whose turn it is at a desktop; see ``conformance``."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from deskhand.backends.base import Backend
from deskhand.backends.lease import DesktopLease
from deskhand.errors import DesktopInUse, Unsupported

from .backend_conformance import BackendConformance
from .batches import quick, until
from .received import Received, pressed
from .xserver import XServer


class LeaseConformance(BackendConformance):
    """One session at a time; skipped where a backend has no leases."""

    @contextmanager
    def client(self, make_backend: Any, server: XServer, batch: dict[str, Any]) -> Iterator[None]:
        """Another process that takes a lease, where there are any, and runs a batch; killed when the block is left.

        Override it where a backend can not be used in a forked process.
        """

        async def work(backend: Backend) -> None:
            lease = None  # it lasts as long as it is referred to
            with contextlib.suppress(Unsupported):
                lease = backend.lease("the client")
                await lease.take(600)
            await backend.act(batch)
            del lease

        process = multiprocessing.get_context("fork").Process(
            target=lambda: self.on(make_backend, server, work), daemon=True
        )
        process.start()
        try:
            yield
        finally:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join()

    def lease(self, backend: Backend, holder: str) -> DesktopLease:
        try:
            return backend.lease(holder)
        except Unsupported:
            pytest.skip("this backend has no leases")

    def test_one_session_has_the_desktop(self, server: XServer, make_backend: Any) -> None:
        async def work(backend: Backend) -> None:
            one, two = self.lease(backend, "one"), self.lease(backend, "two")
            try:
                await one.take(60)
                await one.take(60)
                with pytest.raises(DesktopInUse, match="'one'") as caught:
                    await two.take(60)
                assert (caught.value.facts["holder"], caught.value.sent) == ("one", "none")
                await one.release()
                await one.release()
                await two.take(60)
            finally:
                await one.release()
                await two.release()

        self.on(make_backend, server, work)

    def test_a_session_in_the_queue_gets_the_desktop(self, server: XServer, make_backend: Any) -> None:
        async def work(backend: Backend) -> None:
            one, two, three = (self.lease(backend, name) for name in ("one", "two", "three"))
            try:
                await one.take(60)
                waiting = asyncio.create_task(two.take(60, wait=60))
                given_up = asyncio.create_task(three.take(60, wait=60))
                await asyncio.sleep(0.5)  # in the queue or not yet: both must come to the same
                given_up.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await given_up
                assert not waiting.done()
                await one.release()
                await waiting
            finally:
                await asyncio.gather(one.release(), two.release(), three.release())

        self.on(make_backend, server, work)

    def test_a_lease_outlives_a_batch_that_was_cancelled(self, server: XServer, make_backend: Any) -> None:
        async def work(backend: Backend) -> None:
            one, two = self.lease(backend, "one"), self.lease(backend, "two")
            try:
                await one.take(60)
                held = quick({"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50})
                running = asyncio.create_task(backend.act(held))
                await asyncio.to_thread(until, lambda: pressed(server) or running.done(), "the button is down")
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
                with pytest.raises(DesktopInUse):
                    await two.take(60)
            finally:
                await one.release()
                await two.release()

        self.on(make_backend, server, work)

    def test_a_client_that_is_killed_leaves_the_desktop_to_the_next(
        self, server: XServer, window: Received, make_backend: Any
    ) -> None:
        async def work(backend: Backend) -> None:
            lease = self.lease(backend, "the next")
            with self.client(make_backend, server, quick({"action": "click"}, {"action": "wait", "seconds": 50})):
                await asyncio.to_thread(window.until, "press")
                with pytest.raises(DesktopInUse, match="the client"):
                    await lease.take(60)
            try:
                await lease.take(60, wait=60)
            finally:
                await lease.release()

        self.on(make_backend, server, work)
