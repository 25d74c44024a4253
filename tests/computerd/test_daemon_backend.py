"""What the daemon backend adds to the conformance suite: token, leases, what it tells, and what is not computerd."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deskhand import BackendError, BatchRefused, Daemon, DesktopInUse, DisplayLost, NoDisplay, Session, SetupError
from deskhand.testing import XServer
from deskhand.testing.batches import quick, run
from deskhand.turns import LeaseTerms
from tests.computerd.daemons import RunningDaemon, daemon, write_token

pytest.importorskip("fastapi")


MOVE = quick({"action": "move", "x": 5, "y": 5})


def test_sessions_take_turns(running: RunningDaemon) -> None:
    async def work() -> None:
        def session(name: str) -> Session:
            return Session(Daemon(running.url, token=running.token), name=name, lease=LeaseTerms(ttl=30))

        async with session("first") as first:
            assert (await first.act(MOVE)).ok
            with pytest.raises(DesktopInUse) as refused:
                async with session("second"):
                    pass
            assert refused.value.facts["holder"] == "first"
            without = Daemon(running.url, token=running.token)
            with pytest.raises(DesktopInUse):
                await without.act(MOVE)
            await without.aclose()
            # A call that was given up is no end of the session.
            waiting = asyncio.create_task(first.act(quick({"action": "wait", "seconds": 50})))
            await asyncio.sleep(0.2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await first.act(MOVE)).ok
        async with session("second") as second:
            assert (await second.act(MOVE)).ok

    run(work())


def test_a_lease_outlives_a_restart_of_the_daemon(server: XServer, tmp_path: Path) -> None:
    token = write_token(tmp_path)
    with daemon(server, tmp_path, token_file=token) as first:
        listen = first.listen

        async def work() -> None:
            terms = LeaseTerms(ttl=30)
            async with Session(Daemon(first.url, token_file=token), name="a session", lease=terms) as session:
                assert (await session.act(MOVE)).ok
                first.stop(signal.SIGKILL)
                with pytest.raises(NoDisplay) as gone:
                    await session.act(MOVE)
                assert gone.value.sent == "none"
                with daemon(server, tmp_path, token_file=token, listen=listen):
                    assert (await session.act(MOVE)).ok

        run(work())


def test_who_watches_is_told(running: RunningDaemon) -> None:
    async def work() -> None:
        async with Session(Daemon(running.url, token=running.token), max_actions=5) as session:
            await session.act(MOVE)
            with pytest.raises(BatchRefused):
                await session.act(quick(*[{"action": "move", "x": 1, "y": 1}] * 9))

    run(work())
    assert [line["status"] for line in running.log if line.get("route") == "/outcome"][-1] == 204


def test_pictures_without_a_batch(running: RunningDaemon) -> None:
    async def work() -> None:
        desktop = Daemon(running.url, token=running.token)
        facts, content = await desktop.screenshot(region=[0, 0, 100, 50], format="png")
        assert (facts["width"], facts["height"]) == (100, 50)
        assert content.startswith(b"\x89PNG")
        with pytest.raises(BatchRefused):
            await desktop.screenshot(region=[0, 0, 5000, 50])
        await desktop.aclose()

    run(work())


@pytest.mark.parametrize(
    ("url", "error", "part"),
    [
        ("http://127.0.0.1:9", NoDisplay, "no computerd can be reached"),
        ("unix:/no/such/socket", NoDisplay, "no computerd can be reached"),
        ("ftp://127.0.0.1", (NoDisplay, SetupError), "127.0.0.1"),
        ("http://127.0.0.1:99999", SetupError, "is no address of a computerd"),
        ("http://me:hunter2@127.0.0.1:9", SetupError, "holds no user and no password"),
        ("http://me:hunter2@127.0.0.1:99999", SetupError, "holds no user and no password"),
    ],
)
def test_nobody_there(url: str, error: Any, part: str) -> None:
    async def work() -> None:
        desktop = Daemon(url, token="x" * 20)
        with pytest.raises(error, match=part) as caught:
            await desktop.act(MOVE)
        assert caught.value.sent == "none"
        assert "\n" not in str(caught.value)
        assert "hunter2" not in str(caught.value)
        await desktop.aclose()

    run(work())


def test_a_wrong_token(running: RunningDaemon, tmp_path: Path) -> None:
    async def work() -> None:
        desktop = Daemon(running.url, token="x" * 43)
        with pytest.raises(SetupError, match="token") as caught:
            await desktop.act(MOVE)
        assert caught.value.sent == "none"
        await desktop.aclose()
        open_file = tmp_path / "open"
        open_file.write_text("x" * 43)
        open_file.chmod(0o644)
        for path, part in ((open_file, "mode 600"), (tmp_path / "missing", "No such file")):
            with pytest.raises(SetupError, match=part):
                await Daemon(running.url, token_file=path).info()

    run(work())
    with pytest.raises(ValueError, match="one place"):
        Daemon(running.url)


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Something that is not computerd."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            answer(self)

        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *args: object) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        listener.shutdown()
        listener.server_close()


def _says(
    status: int, content: bytes, kind: str, length: int | None = None
) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(length or len(content)))
        if status in (301, 307):
            handler.send_header("Location", "http://evil.example/act")
        handler.end_headers()
        handler.wfile.write(content)
        handler.close_connection = True

    return answer


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (_says(200, b"<html>", "text/html"), BackendError),
        (_says(200, b"[]", "application/json"), BackendError),
        (_says(200, b"{}", "application/json"), BackendError),
        (_says(200, b"[" * 50_000, "application/json"), BackendError),
        (_says(400, b"[" * 50_000, "application/json"), BackendError),
        (_says(200, b"--b\r\n", "multipart/mixed; boundary=b"), BackendError),
        (_says(502, b"Bad gateway", "text/plain"), BackendError),
        (_says(307, b"", "text/plain"), BackendError),
        (_says(200, b'{"ok": tr', "application/json", 500), DisplayLost),
    ],
    ids=["html", "list", "object", "deep", "deep problem", "parts", "gateway", "redirect", "cut"],
)
def test_what_is_not_computerd(answer: Any, error: type[Exception]) -> None:
    async def work(url: str) -> None:
        desktop = Daemon(url, token="x" * 20)
        with pytest.raises(error) as caught:
            await desktop.act(MOVE)
        assert getattr(caught.value, "sent", None) == "unknown"
        assert "\n" not in str(caught.value)
        for look in (desktop.apps, desktop.windows, lambda: desktop.lease("me").take(1.0)):
            with pytest.raises(BackendError):
                await look()
        await desktop.aclose()

    with answering(answer) as url:
        run(work(url))


def test_every_kind_of_error_comes_back_as_itself() -> None:
    from deskhand import errors
    from deskhand.backends.answers import answer_in_problem, raise_error
    from deskhand.computerd.problems import problem_of

    for made in (
        errors.BatchRefused("wrong", 3, near=["x"]),
        errors.NoDisplay("none"),
        errors.DesktopInUse("used", holder="me"),
        errors.Unsupported("can not"),
        errors.SetupError("not set up"),
        errors.ActionFailed("failed"),
        errors.DisplayLost("lost"),
        errors.DisplayTimeout("slow"),
        errors.CaptureFailed("no picture"),
        errors.BackendError("odd"),
    ):
        problem = json.loads(bytes(problem_of(made).body))
        with pytest.raises(type(made)) as caught:
            raise_error(answer_in_problem(problem))
        assert type(caught.value) is type(made)
        assert (str(caught.value), caught.value.sent) == (str(made), made.sent)
        assert {**made.facts, **caught.value.facts} == caught.value.facts
