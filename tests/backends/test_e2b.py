"""``E2B``: the life of its sandbox, the desktop in it, and its words when something is wrong; through the real SDK."""

from __future__ import annotations

import asyncio
import io
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deskhand import E2B, BackendError, BatchRefused, DeskhandError, DisplayLost, Session, SetupError
from deskhand.backends import e2b_process
from deskhand.testing import XServer
from deskhand.testing.batches import quick, run, until
from deskhand.testing.received import pressed
from tests.backends import guests
from tests.standins import e2b
from tests.test_extras import BLOCK, python

MOVE = quick({"action": "move", "x": 5, "y": 6})
CREATED = ("POST", "/v2/sandboxes")
STARTED = ("POST", "/process.Process/Start")
SENT = ("POST", "/process.Process/SendInput")
ENDED = ("DELETE", r"/sandboxes/\w+")
EXTENDED = ("POST", r"/sandboxes/\w+/timeout")


@pytest.fixture
def api() -> Iterator[e2b.StandIn]:
    with e2b.serving() as stand_in:
        yield stand_in


def backend(api: e2b.StandIn, display: XServer, **more: Any) -> E2B:
    place = {"display": display.display, "xauthority": display.xauthority, "python": guests.PYTHON}
    return E2B(**{**e2b.options(api), **place, **more})


class TestItsLife:
    def test_made_when_needed_and_ended_at_the_end(self, api: e2b.StandIn, display: XServer) -> None:
        async def work() -> None:
            desktop = backend(api, display, timeout=120)
            assert desktop.sandbox_id is None
            assert api.requests == []
            async with Session(desktop) as session:
                assert (await session.act(MOVE)).ok
                (sandbox,) = api.sandboxes.values()
                assert desktop.sandbox_id == sandbox.id
                assert (sandbox.template, sandbox.lifetime >= 120) == ("desktop", True)
            assert api.sandboxes == {}

        run(work())

    def test_one_request_a_batch(self, api: e2b.StandIn, display: XServer) -> None:
        async def work() -> None:
            desktop = backend(api, display)
            await desktop.act({**MOVE, "picture": True})
            before = (api.count(*STARTED), api.count(*SENT), len(api.requests))
            for _ in range(3):
                assert (await desktop.act({**MOVE, "picture": True})).picture
            with pytest.raises(BatchRefused):
                await desktop.act({"actions": []})
            assert api.count(*STARTED) == before[0] == 2  # one to take the hand in, and the hand
            assert api.count(*SENT) - before[1] >= 4  # signs of life may have come between
            assert len(api.requests) - before[2] == api.count(*SENT) - before[1]
            await desktop.aclose()
            assert api.count(*CREATED) == 1

        run(work())

    def test_the_time_it_lives_is_extended_while_it_is_used(self, api: e2b.StandIn, display: XServer) -> None:
        async def work() -> None:
            desktop = backend(api, display, timeout=30)
            await desktop.info()
            (sandbox,) = api.sandboxes.values()
            assert (sandbox.lifetime, api.count(*EXTENDED)) == (30, 0)
            await desktop.act(MOVE)
            assert sandbox.lifetime >= 50  # what the batch may take, and 30 s
            extended = api.count(*EXTENDED)
            await desktop.info()
            assert api.count(*EXTENDED) == extended
            await desktop.aclose()

        run(work())

    def test_one_that_is_kept_and_found_again(self, api: e2b.StandIn, display: XServer) -> None:
        async def work() -> None:
            first = backend(api, display, keep=True)
            await first.act(quick({"action": "key_down", "keys": "shift"}))
            await first.aclose()
            assert pressed(display) == []
            (id,) = api.sandboxes
            second = backend(api, display, sandbox_id=id)
            assert second.sandbox_id == id
            assert (await second.act(MOVE)).ok
            await second.aclose()
            assert list(api.sandboxes) == [id]
            third = backend(api, display, sandbox_id=id, keep=False)
            await third.info()
            await third.aclose()
            assert api.sandboxes == {}
            assert api.count(*CREATED) == 1

        run(work())

    def test_asked_for_and_not_waited_for_it_is_ended_too(self, api: e2b.StandIn, display: XServer) -> None:
        async def work() -> None:
            desktop = backend(api, display)
            asking = asyncio.create_task(desktop.info())
            await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await desktop.aclose()
            assert api.sandboxes == {}
            assert api.count(*CREATED) == api.count(*ENDED)

        run(work())

    def test_nothing_is_made_by_one_that_was_not_used(self, api: e2b.StandIn, display: XServer) -> None:
        run(backend(api, display).aclose())
        assert api.requests == []

    def test_nothing_of_it_is_left_running(self, api: e2b.StandIn, display: XServer) -> None:
        async def work() -> list[int]:
            desktop = backend(api, display)
            lease = desktop.lease("one")
            await lease.take(60)
            await desktop.act(MOVE)
            (sandbox,) = api.sandboxes.values()
            pids = list(sandbox.commands)
            assert len(pids) == 2
            await lease.release()
            await desktop.aclose()
            return pids

        pids = run(work())
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "they have ended")


class TestWhatGoesWrong:
    def error(self, desktop: E2B) -> DeskhandError:
        async def work() -> DeskhandError:
            try:
                with pytest.raises(DeskhandError) as caught:
                    await desktop.act(MOVE)
            finally:
                await desktop.aclose()
            return caught.value

        error = run(work())
        assert "\n" not in str(error)
        assert error.sent == "none"
        return error

    def test_no_key(self, api: e2b.StandIn, display: XServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("E2B_API_KEY", raising=False)
        error = self.error(backend(api, display, api_key=None))
        assert isinstance(error, SetupError)
        assert "E2B_API_KEY" in str(error)
        assert api.requests == []

    def test_the_key_of_the_environment(
        self, api: e2b.StandIn, display: XServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("E2B_API_KEY", e2b.KEY)

        async def work() -> None:
            desktop = backend(api, display, api_key=None)
            assert (await desktop.act(MOVE)).ok
            await desktop.aclose()

        run(work())

    def test_a_wrong_key(self, api: e2b.StandIn, display: XServer) -> None:
        error = self.error(backend(api, display, api_key="wrong"))
        assert isinstance(error, SetupError)
        assert "refuses the key" in str(error)

    def test_no_such_template(self, api: e2b.StandIn, display: XServer) -> None:
        error = self.error(backend(api, display, template="no-such"))
        assert isinstance(error, SetupError)
        assert "template 'no-such' not found" in str(error)

    def test_no_such_sandbox(self, api: e2b.StandIn, display: XServer) -> None:
        error = self.error(backend(api, display, sandbox_id="inosuch"))
        assert isinstance(error, SetupError)
        assert "inosuch not found" in str(error)
        assert api.count(*ENDED) == 0

    def test_too_many(self, api: e2b.StandIn, display: XServer) -> None:
        api.refusals.append((429, "you have reached the maximum number of sandboxes"))
        error = self.error(backend(api, display, retries=0))
        assert isinstance(error, SetupError)
        assert "maximum number of sandboxes" in str(error)

    def test_after_a_refusal_the_next_call_tries_again(self, api: e2b.StandIn, display: XServer) -> None:
        api.refusals.append((500, "try later"))

        async def work() -> None:
            desktop = backend(api, display, retries=0)
            with pytest.raises(SetupError, match="try later"):
                await desktop.info()
            assert (await desktop.act(MOVE)).ok
            await desktop.aclose()

        run(work())

    def test_nobody_answers(self, display: XServer) -> None:
        dead: dict[str, Any] = {
            "api_key": "k",
            "api_url": "http://127.0.0.1:1",
            "sandbox_url": "http://127.0.0.1:1",
            "retries": 0,
        }
        error = self.error(E2B(display=display.display, **dead))
        assert isinstance(error, SetupError)
        assert "no E2B sandbox can be made" in str(error)

    def test_no_python_there(self, api: e2b.StandIn, display: XServer) -> None:
        error = self.error(backend(api, display, python="no-such-python"))
        assert isinstance(error, SetupError)
        assert "no-such-python" in str(error)
        assert api.sandboxes == {}

    @pytest.mark.parametrize("resident", [True, False])
    def test_it_ends_between_two_batches(self, api: e2b.StandIn, display: XServer, resident: bool) -> None:
        async def work() -> None:
            desktop = backend(api, display, resident=resident)
            assert (await desktop.act(MOVE)).ok
            await asyncio.to_thread(api.kill, str(desktop.sandbox_id))
            for _ in range(2):
                with pytest.raises(DisplayLost) as caught:
                    await desktop.act(MOVE)
                assert "\n" not in str(caught.value)
            assert caught.value.sent == "none"
            assert "is gone" in str(caught.value)
            await desktop.aclose()
            assert api.count(*CREATED) == 1  # it is never replaced

        run(work())

    def test_it_ends_in_the_middle_of_a_batch(self, api: e2b.StandIn, display: XServer) -> None:
        async def work() -> None:
            desktop = backend(api, display)
            held = quick({"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50})
            acting = asyncio.create_task(desktop.act(held))
            await asyncio.to_thread(until, lambda: pressed(display) or acting.done(), "the button is down")
            await asyncio.to_thread(api.kill, str(desktop.sandbox_id))
            with pytest.raises(DisplayLost) as caught:
                await acting
            assert caught.value.sent == "unknown"
            assert "was not found" in str(caught.value) or "killed" in str(caught.value)
            with pytest.raises(DisplayLost, match="is gone"):
                await desktop.lease("one").take(5)
            await desktop.aclose()

        run(work())

    def test_one_that_can_not_be_ended_is_told(self, api: e2b.StandIn, display: XServer) -> None:
        async def work() -> None:
            desktop = backend(api, display, retries=0)
            await desktop.act(MOVE)
            api.refusals.append((500, "not now"))
            with pytest.raises(BackendError, match=r"could not be ended .*not now"):
                await desktop.aclose()
            await desktop.aclose()

        run(work())


def test_a_hand_that_hears_nothing_releases_and_ends(
    api: e2b.StandIn, display: XServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network is down: envd keeps the hand running, with its input open."""
    from deskhand.backends.e2b_sandbox import E2BSandbox

    monkeypatch.setattr(E2BSandbox, "hand_options", ("--text", "--silence", "1"))
    monkeypatch.setattr(e2b_process, "ALIVE_S", 0.2)

    async def work() -> None:
        desktop = backend(api, display)
        held = quick({"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 2}, {"action": "mouse_up"})
        assert (await desktop.act(held)).ok  # signs of life keep it going
        lost = quick({"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50})
        acting = asyncio.create_task(desktop.act(lost))
        await asyncio.to_thread(until, lambda: pressed(display), "the button is down")
        api.deaf.add("SendInput")
        await asyncio.to_thread(until, lambda: not pressed(display), "the button is up")
        with pytest.raises(DisplayLost) as caught:
            await acting
        assert caught.value.sent == "unknown"
        api.deaf.clear()
        assert (await desktop.act(MOVE)).ok
        await desktop.aclose()

    run(work())


def test_a_picture_of_many_bytes_arrives_whole(api: e2b.StandIn, display: XServer, tmp_path: Path) -> None:
    """Noise does not compress: it comes in several pieces."""
    if shutil.which("xsetroot") is None:
        pytest.skip("xsetroot is not installed (Debian: x11-xserver-utils)")
    bits = ",\n".join(f"0x{byte:02x}" for byte in random.Random(4).randbytes(1280 * 800 // 8))
    bitmap = tmp_path / "noise.xbm"
    bitmap.write_text(f"#define n_width 1280\n#define n_height 800\nstatic char n_bits[] = {{\n{bits}}};\n")
    subprocess.run(["xsetroot", "-bitmap", bitmap], env=display.env, check=True)

    async def work() -> None:
        desktop = backend(api, display)
        outcome = await desktop.act({"actions": [{"action": "screenshot"}], "picture": True})
        assert outcome.picture is not None
        image = Image.open(io.BytesIO(outcome.picture))
        image.load()
        assert image.size == (1280, 800)
        assert len(outcome.picture) > 100_000
        assert not {"bytes", "base64"} & set(outcome.answer["picture"])
        await desktop.aclose()

    run(work())


class TestItsDesktop:
    @pytest.fixture
    def more(self) -> list[str]:
        """What its file system has or lacks."""
        return []

    @pytest.fixture
    def box(self, tmp_path: Path, more: list[str]) -> Iterator[e2b.StandIn]:
        """A sandbox with a file system of its own for what is temporary, and no display yet."""
        if shutil.which("bwrap") is None:
            pytest.skip("bwrap is not installed (Debian: bubblewrap)")
        inside = tmp_path / "tmp of the sandbox"
        inside.mkdir(mode=0o1777)
        words = ["bwrap", "--dev-bind", "/", "/", "--bind", str(inside), "/tmp", "--unshare-net", *more, "--chdir", "/"]
        if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
            pytest.skip("bubblewrap does not work here")
        with e2b.serving(words) as stand_in:
            yield stand_in

    @pytest.mark.slow
    def test_one_is_started_and_found_again(self, box: e2b.StandIn) -> None:
        async def work() -> None:
            first = E2B(**e2b.options(box), python=guests.PYTHON, size=(1000, 700), keep=True)
            info = await first.info()
            assert (info["size"], bool(info["window_manager"])) == ([1000, 700], True)
            assert (await first.act({**MOVE, "picture": True})).picture
            await first.aclose()
            second = E2B(**e2b.options(box), python=guests.PYTHON, sandbox_id=first.sandbox_id, keep=False)
            again = await second.info()
            assert (again["display"], again["size"]) == (info["display"], [1000, 700])
            await second.aclose()

        run(work())

    @pytest.mark.parametrize("more", [["--ro-bind", "/dev/null", str(shutil.which("Xvfb"))]], ids=["no Xvfb"])
    def test_a_template_without_a_desktop(self, box: e2b.StandIn) -> None:
        async def work() -> None:
            desktop = E2B(**e2b.options(box), python=guests.PYTHON)
            with pytest.raises(SetupError, match="Xvfb is not installed: use a template with a desktop"):
                await desktop.info()
            await desktop.aclose()

        run(work())


@pytest.mark.skipif(not os.environ.get("E2B_API_KEY"), reason="E2B_API_KEY is not set: no sandbox of E2B's own")
@pytest.mark.long
def test_a_sandbox_of_e2bs_own() -> None:
    async def work() -> None:
        async with Session(E2B()) as session:
            outcome = await session.act({"actions": [{"action": "wait", "seconds": 0}], "picture": True})
            assert outcome.ok
            assert outcome.picture

    run(work())


def test_a_missing_extra_names_itself() -> None:
    code = BLOCK.format(missing=["e2b"]) + (
        "from deskhand import E2B\ntry:\n    E2B()\nexcept ImportError as error:\n    print(error)"
    )
    done = python(code)
    words = "The E2B backend is not available. Install it with: pip install 'deskhand[e2b]'\n"
    assert done.stdout == words, done.stderr
