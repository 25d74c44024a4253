"""The part of the conformance suite that needs no X server; see ``conformance``."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from PIL import Image

from deskhand.backends.base import Backend, Outcome
from deskhand.errors import BatchRefused

from .batches import WRONG, quick, run

T = TypeVar("T")


class BackendConformance:
    """The part that needs no X server; for pretend desktops."""

    @pytest.fixture
    def server(self) -> Any:
        """The desktop the backend is made for; None: it brings its own."""
        return None

    @pytest.fixture
    def make_backend(self) -> Callable[[Any], Backend]:
        """Override it: how to make a backend for ``server``."""
        raise NotImplementedError("give a fixture make_backend: lambda server: MyBackend(server.display)")

    def on(self, make_backend: Any, server: Any, work: Callable[[Backend], Awaitable[T]]) -> T:
        """Run ``work`` with a backend, and close that."""

        async def whole() -> T:
            backend = make_backend(server)
            try:
                return await work(backend)
            finally:
                await backend.aclose()

        return run(whole())

    def test_info_names_the_display_and_its_size(self, server: Any, make_backend: Any) -> None:
        info = self.on(make_backend, server, lambda backend: backend.info())
        width, height = info["size"]
        assert isinstance(info["display"], str)
        assert type(width) is type(height) is int
        assert width > 0
        assert height > 0

    def test_one_result_an_action_and_a_stop_at_the_first_failure(self, server: Any, make_backend: Any) -> None:
        missing = {"action": "wait_window", "title": "there is no such window", "timeout": 0}
        batch = quick({"action": "move", "x": 1, "y": 1}, missing, {"action": "move", "x": 9, "y": 9}, picture=True)
        outcome: Outcome = self.on(make_backend, server, lambda backend: backend.act(batch))
        assert not outcome.ok
        assert [(r["action"], r["status"]) for r in outcome.results] == [
            ("move", "ok"),
            ("wait_window", "failed"),
            ("move", "skipped"),
        ]
        assert outcome.answer["sent"] == "part"
        assert outcome.error
        assert outcome.picture, "a batch that failed still shows the screen"

    def test_the_answer_has_the_shape_of_every_answer(self, server: Any, make_backend: Any) -> None:
        outcome: Outcome = self.on(make_backend, server, lambda b: b.act({"actions": [{"action": "cursor_position"}]}))
        assert outcome.ok
        assert set(outcome.answer) == {"ok", "sent", "results", "settled", "settle", "settle_ms", "moving"}
        assert outcome.picture is None
        assert "picture" not in outcome.answer

    @pytest.mark.parametrize(("batch", "index", "part"), WRONG, ids=range(len(WRONG)))
    def test_a_wrong_batch_is_refused(self, server: Any, make_backend: Any, batch: Any, index: Any, part: str) -> None:
        async def work(backend: Backend) -> None:
            with pytest.raises(BatchRefused) as caught:
                await backend.act(batch)
            error = caught.value
            assert (error.sent, error.index) == ("none", index)
            assert part in str(error)
            assert "\n" not in str(error)
            assert not set(error.facts) & {"results", "settle", "sent", "kind"}
            assert (await backend.act(quick({"action": "wait", "seconds": 0}))).ok

        self.on(make_backend, server, work)

    def test_pictures_and_their_facts(self, server: Any, make_backend: Any) -> None:
        async def work(backend: Backend) -> None:
            width, height = (await backend.info())["size"]
            newest = 0
            for wish, region, size in (
                (True, [0, 0, width, height], (width, height)),
                ({"max_edge": 160}, [0, 0, width, height], None),
                ({"region": [10, 20, 60, 50]}, [10, 20, 60, 50], (50, 30)),
            ):
                outcome = await backend.act(quick({"action": "move", "x": 3, "y": 4}, picture=wish))
                assert outcome.picture is not None
                image = Image.open(io.BytesIO(outcome.picture))
                image.load()
                facts = outcome.answer["picture"]
                assert image.format == "PNG"
                assert image.size == (facts["width"], facts["height"])
                assert facts["region"] == region
                assert facts["screen"] == [width, height]
                assert facts["cursor"] == [3, 4]
                assert facts["sequence"] > newest
                assert abs(facts["scale"] - facts["width"] / (region[2] - region[0])) < 0.01
                assert not {"bytes", "base64", "path"} & set(facts)
                assert image.size == size if size else max(image.size) == 160
                newest = facts["sequence"]
            guarded = quick({"action": "wait", "seconds": 0}, expect={"sequence": newest})
            assert (await backend.act(guarded)).ok

        self.on(make_backend, server, work)

    def test_applications_and_windows(self, server: Any, make_backend: Any) -> None:
        async def work(backend: Backend) -> None:
            for app in await backend.apps():
                assert set(app) == {"id", "name", "path"}
            for window in await backend.windows():
                assert set(window) >= {"id", "title", "app_id", "pid", "rect", "state", "active", "type"}
                assert len(window["rect"]) == 4

        self.on(make_backend, server, work)

    def test_after_the_end(self, server: Any, make_backend: Any) -> None:
        async def work(backend: Backend) -> None:
            assert (await backend.act(quick({"action": "move", "x": 1, "y": 1}))).ok
            await asyncio.gather(backend.aclose(), backend.aclose())
            await backend.aclose()
            with pytest.raises(RuntimeError, match="closed"):
                await backend.act(quick({"action": "move", "x": 2, "y": 2}))

        self.on(make_backend, server, work)

    def test_one_that_was_never_used_can_be_closed(self, server: Any, make_backend: Any) -> None:
        async def work(backend: Backend) -> None:
            pass

        self.on(make_backend, server, work)
