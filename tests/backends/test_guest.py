"""``Guest``: how many commands a batch takes, what cancelling does, and its words when something is wrong there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from deskhand import (
    BatchRefused,
    DeskhandError,
    DesktopInUse,
    DisplayLost,
    Finished,
    Guest,
    NoDisplay,
    SetupError,
    Transport,
    Unsupported,
    transports,
)
from deskhand.backends import guest as guest_module
from deskhand.backends import running
from deskhand.backends.guest_lease import GuestLease
from deskhand.testing import XServer
from deskhand.testing.batches import quick, run, until
from deskhand.testing.received import fixture_window, pressed
from deskhand.turns import LeaseTerms, terms_at
from tests.backends import guests

MOVE = quick({"action": "move", "x": 5, "y": 6})


def lines(path: Path) -> int:
    return path.read_text().count("\n")


class TestCommands:
    def test_one_command_a_batch_and_one_to_send_the_hand(self, display: XServer, tmp_path: Path) -> None:
        log = tmp_path / "log"

        async def work() -> None:
            guest = Guest(guests.counting(guests.bare(), log), display.display, python=guests.PYTHON)
            for number in range(1, 4):
                outcome = await guest.act({**MOVE, "picture": True})
                assert outcome.picture
                assert lines(log) == number + 1
            with pytest.raises(BatchRefused):
                await guest.act({"actions": []})
            assert lines(log) == 5
            await guest.windows()
            assert lines(log) == 6
            await guest.aclose()
            assert lines(log) == 7  # releases

        run(work())

    def test_a_resident_hand_is_one_command_for_all(self, display: XServer, tmp_path: Path) -> None:
        log = tmp_path / "log"

        async def work() -> None:
            guest = Guest(guests.counting(guests.bare(), log), display.display, python=guests.PYTHON, resident=True)
            for _ in range(3):
                assert (await guest.act({**MOVE, "picture": True})).ok
            await guest.info()
            await guest.aclose()
            assert lines(log) == 2

        run(work())

    def test_one_that_only_looked_has_nothing_to_release(self, display: XServer, tmp_path: Path) -> None:
        log = tmp_path / "log"

        async def work() -> None:
            guest = Guest(guests.counting(guests.bare(), log), display.display, python=guests.PYTHON)
            await guest.info()
            await guest.aclose()
            assert lines(log) == 2

        run(work())

    def test_a_resident_hand_that_ended_between_two_batches_is_started_anew(
        self, display: XServer, tmp_path: Path
    ) -> None:
        note = tmp_path / "pid"
        transport = Transport("noting", ("sh", "-c", f'echo $$ >"{note}"; exec "$@"', "sh", *guests.bare().prefix))

        async def work() -> None:
            guest = Guest(transport, display.display, python=guests.PYTHON, resident=True)
            assert (await guest.act(MOVE)).ok
            os.kill(int(note.read_text()), 9)
            await asyncio.to_thread(until, lambda: guest._hand is not None and guest._hand.ended, "it has ended")
            assert (await guest.act(MOVE)).ok
            await guest.aclose()

        run(work())

    def test_nothing_of_it_is_left_running(self, display: XServer, tmp_path: Path) -> None:
        async def work() -> int:
            guest = Guest(guests.bare(), display.display, python=guests.PYTHON, resident=True)
            await guest.act(MOVE)
            assert guest._hand is not None
            pid = guest._hand._process.pid
            await guest.aclose()
            return pid

        pid = run(work())
        assert not os.path.exists(f"/proc/{pid}")


class TestCancelling:
    @pytest.mark.parametrize("resident", [False, True])
    def test_cancelled_twice_the_next_batch_waits_for_the_release(self, display: XServer, resident: bool) -> None:
        async def work() -> None:
            guest = Guest(guests.bare(), display.display, python=guests.PYTHON, resident=resident)
            held = quick({"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50})
            task = asyncio.create_task(guest.act(held))
            await asyncio.to_thread(until, lambda: pressed(display), "the button is down")
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await guest.act(MOVE)).ok
            assert pressed(display) == []
            await guest.aclose()

        run(work())

    def test_while_the_hand_starts(self, openbox_display: XServer) -> None:
        """At any moment of its start: nothing is sent after the call has returned."""

        async def work() -> None:
            guest = Guest(guests.bare(), openbox_display.display, python=guests.PYTHON)
            await guest.info()
            clicks = quick(*[{"action": "click", "x": 9, "y": 9}] * 90, {"action": "mouse_down"})
            for delay in (0.0, 0.01, 0.03, 0.08, 0.15):
                task = asyncio.create_task(guest.act(clicks))
                await asyncio.sleep(delay)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                window.forget()
                assert (await guest.act(quick({"action": "cursor_position"}))).ok
                assert window.all("press") == []
                assert pressed(openbox_display) == []
            await guest.aclose()

        with fixture_window(openbox_display) as window:
            run(work())

    def test_a_hand_that_does_not_end_is_ended(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(running, "PARTING", 0.2)
        deaf = Transport(
            "deaf", (sys.executable, "-c", "import signal, time\nsignal.signal(15, print)\ntime.sleep(60)")
        )

        async def work() -> None:
            hand = await running.RunningHand.start(deaf, [])
            await hand.end()
            assert hand.ended

        run(work())


class TestWhatGoesWrong:
    def error(self, guest: Guest) -> DeskhandError:
        async def work() -> DeskhandError:
            with pytest.raises(DeskhandError) as caught:
                await guest.act(MOVE)
            await guest.aclose()
            return caught.value

        error = run(work())
        assert "\n" not in str(error)
        return error

    def test_the_program_of_the_transport_is_not_there(self) -> None:
        error = self.error(Guest(Transport("none", ("/no/such/program",))))
        assert isinstance(error, SetupError)
        assert (error.sent, "no command can be run" in str(error)) == ("none", True)

    def test_no_python_there(self) -> None:
        error = self.error(Guest(guests.bare(), python="no-such-python"))
        assert isinstance(error, SetupError)
        assert (error.sent, "no-such-python" in str(error)) == ("none", True)

    def test_a_python_that_is_too_old(self, tmp_path: Path) -> None:
        old = Path("~/.pyenv/versions").expanduser()
        found = sorted(old.glob("3.[678].*/bin/python3"))
        if not found:
            pytest.skip("there is no Python older than 3.9 here")
        error = self.error(Guest(guests.bare(), python=str(found[0])))
        assert isinstance(error, SetupError)
        assert "the hand needs 3.9 or newer" in str(error)

    @pytest.mark.parametrize(
        ("answer", "part"),
        [
            (Finished(1, b"", b"Segmentation fault\n"), "no answer (Segmentation fault)"),
            (Finished(137, b"", b""), "no answer (exit status 137)"),
            (Finished(0, b"{}", b""), "no answer"),
            (Finished(0, b"[]\n", b""), "no answer"),
            (Finished(0, b"Welcome!\n", b""), "no answer"),
            (Finished(0, b'{"ok": true, "sent": "all", "results": [], "picture": 5}\n', b""), "no answer"),
            (
                Finished(0, b'{"ok": true, "sent": "all", "results": [], "picture": {"bytes": -4}}\nPNG', b""),
                "no answer",
            ),
            (Finished(0, b'{"a": ' * 100_000 + b"\n", b""), "no answer"),
            (Finished(0, b'{"ok": true, "sent": "all", "results": [], "picture": {"bytes": 9}}\nPNG', b""), "cut off"),
        ],
        ids=range(9),
    )
    def test_no_whole_answer(self, answer: Finished, part: str) -> None:
        asked: list[bytes] = []

        async def function(argv: Sequence[str], stdin: bytes) -> Finished:
            asked.append(stdin)
            return Finished(0, b"/tmp/the hand\n", b"") if "-c" in argv else answer

        error = self.error(Guest(function))
        assert isinstance(error, DisplayLost)
        assert part in str(error)
        assert error.sent == ("all" if part == "cut off" else "unknown")
        assert sum(b"move" in stdin for stdin in asked if len(stdin) < 1000) == 1
        assert asked[-1] == b'{"request": "release"}'

    @pytest.mark.parametrize(
        "answer",
        [
            b"{}",
            b'{"ok": true}',
            b'{"ok": true, "sent": "all", "results": "x"}',
            b'{"ok": true, "sent": "all", "results": [{}]}',
            b'{"ok": false, "kind": "refused", "error": "no", "message": "x", "self": 1}',
        ],
    )
    def test_what_no_hand_answers(self, answer: bytes) -> None:
        async def function(argv: Sequence[str], stdin: bytes) -> Finished:
            return Finished(0, b"/tmp/the hand\n" if "-c" in argv else answer + b"\n", b"")

        assert self.error(Guest(function)).sent == "unknown"

    @pytest.mark.parametrize("resident", [False, True])
    def test_a_shell_that_greets_first(self, display: XServer, resident: bool) -> None:
        """What a login shell there says on its standard output is no part of the path, nor of an answer."""
        greeting = ("sh", "-c", 'echo "Welcome!"; echo; exec "$@"', "sh")
        transport = Transport("greeting", (*greeting, *guests.bare().prefix))

        async def work() -> None:
            guest = Guest(transport, display.display, python=guests.PYTHON, resident=resident)
            outcome = await guest.act({**MOVE, "picture": True})
            assert outcome.ok
            assert outcome.picture is not None
            assert outcome.picture.startswith(b"\x89PNG")
            await guest.aclose()

        run(work())

    def test_a_function_that_greets_first(self, display: XServer) -> None:
        async def function(argv: Sequence[str], stdin: bytes) -> Finished:
            process = await asyncio.create_subprocess_exec(
                *guests.bare().command(argv), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            said, _ = await process.communicate(stdin)
            return Finished(process.returncode or 0, b"Welcome!\n" + said, b"")

        async def work() -> None:
            guest = Guest(function, display.display, python=guests.PYTHON)
            assert (await guest.act({**MOVE, "picture": True})).picture
            await guest.aclose()

        run(work())

    @pytest.mark.slow
    @pytest.mark.parametrize("resident", [False, True])
    def test_an_answer_that_does_not_come(
        self, display: XServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, resident: bool
    ) -> None:
        """The transport hangs: the batch has a deadline, and so has its end."""
        monkeypatch.setattr(guest_module, "PATIENCE", 1.0)
        monkeypatch.setattr(guest_module, "longest", lambda batch: 0.0)
        monkeypatch.setattr(running, "PARTING", 0.2)
        flag = tmp_path / "hang"
        script = f'[ -e "{flag}" ] && exec sleep 60; exec "$@"'
        transport = Transport("hanging", ("sh", "-c", script, "sh", *guests.bare().prefix))

        async def work() -> None:
            guest = Guest(transport, display.display, python=guests.PYTHON, resident=resident)
            await guest._install()
            flag.touch()
            with pytest.raises(DisplayLost, match="none came within 1 s") as caught:
                await guest.act(MOVE)
            assert caught.value.sent == "unknown"
            flag.unlink()
            monkeypatch.undo()
            assert (await guest.act(MOVE)).ok
            await guest.aclose()

        run(work())

    def test_a_guest_that_forgot_the_hand_gets_it_again(self, display: XServer, tmp_path: Path) -> None:
        async def work() -> None:
            guest = Guest(guests.bare(), display.display, python=guests.PYTHON)
            assert (await guest.act(MOVE)).ok
            guest._path = str(tmp_path / "gone")
            with pytest.raises(DisplayLost, match="gone"):
                await guest.act(MOVE)
            assert (await guest.act(MOVE)).ok
            await guest.aclose()

        run(work())

    def test_a_function_can_not_keep_one_running(self) -> None:
        with pytest.raises(ValueError, match="Transport"):
            Guest(guests.OneByOne(), resident=True)
        guest = Guest(guests.OneByOne())
        with pytest.raises(Unsupported, match="use a Transport"):
            guest.lease("one")
        assert terms_at(guest) is None
        assert terms_at(Guest(guests.bare())) == LeaseTerms()


class TestLease:
    """What there is beside the conformance suite's part."""

    def test_one_command_holds_it_and_ends_with_it(self, display: XServer, tmp_path: Path) -> None:
        log = tmp_path / "log"

        async def work() -> int:
            guest = Guest(guests.counting(guests.bare(), log), display.display, python=guests.PYTHON)
            lease = guest.lease("one")
            for _ in range(3):
                await lease.take(60)
            assert lines(log) == 2  # one to send the hand
            assert isinstance(lease, GuestLease)
            assert lease._hand is not None
            pid = lease._hand._process.pid
            await lease.release()
            await guest.aclose()
            return pid

        assert not os.path.exists(f"/proc/{run(work())}")

    def test_a_command_that_ended_is_started_anew(self, display: XServer) -> None:
        async def work() -> None:
            guest = Guest(guests.bare(), display.display, python=guests.PYTHON)
            lease = guest.lease("one")
            await lease.take(60)
            assert isinstance(lease, GuestLease)
            assert lease._hand is not None
            os.kill(lease._hand._process.pid, 9)
            with contextlib.suppress(DisplayLost):  # when it is asked before its end is known here
                await lease.take(60)
            await lease.take(60)
            other = guest.lease("two")
            with pytest.raises(DesktopInUse, match="'one'"):
                await other.take(60)
            await lease.release()
            await other.release()
            await guest.aclose()

        run(work())

    def test_a_renewal_that_is_cancelled_keeps_it(self, display: XServer) -> None:
        async def work() -> None:
            guest = Guest(guests.bare(), display.display, python=guests.PYTHON)
            lease, other = guest.lease("one"), guest.lease("two")
            await lease.take(60)
            renewing = asyncio.create_task(lease.take(60))
            await asyncio.sleep(0)
            renewing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await renewing
            with pytest.raises(DesktopInUse):
                await other.take(60)
            await lease.take(60)
            await lease.release()
            await other.take(60)
            await other.release()
            await guest.aclose()

        run(work())

    def test_released_while_it_waits(self, display: XServer) -> None:
        async def work() -> None:
            guest = Guest(guests.bare(), display.display, python=guests.PYTHON)
            lease, other = guest.lease("one"), guest.lease("two")
            await lease.take(60)
            waiting = asyncio.create_task(other.take(60, wait=60))
            await asyncio.sleep(0.3)
            await other.release()
            with pytest.raises(DisplayLost) as caught:
                await waiting
            assert caught.value.sent == "none"
            await lease.release()
            await guest.aclose()

        run(work())

    def test_a_guest_that_forgot_the_hand_gets_it_again(self, display: XServer, tmp_path: Path) -> None:
        async def work() -> None:
            guest = Guest(guests.bare(), display.display, python=guests.PYTHON)
            await guest.info()
            guest._path = str(tmp_path / "gone")
            lease = guest.lease("one")
            with pytest.raises(DisplayLost, match="gone") as caught:
                await lease.take(60)
            assert caught.value.sent == "none"
            await lease.take(60)
            await lease.release()
            await guest.aclose()

        run(work())

    def test_no_display_there(self) -> None:
        async def work() -> None:
            guest = Guest(guests.bare(), ":4711", python=guests.PYTHON)
            lease = guest.lease("one")
            with pytest.raises(NoDisplay, match=":4711"):
                await lease.take(60)
            await lease.release()
            await guest.aclose()

        run(work())


def test_a_directory_of_somebody_else_is_not_used(display: XServer, tmp_path: Path) -> None:
    """In a shared /tmp another user could have put a hand of its own there."""
    (tmp_path / f"deskhand-hand-{os.geteuid()}").mkdir(mode=0o777)
    (tmp_path / f"deskhand-hand-{os.geteuid()}").chmod(0o777)
    transport = Transport("bare", ("env", "-i", "PATH=/usr/bin:/bin", f"TMPDIR={tmp_path}"))

    async def work() -> str:
        guest = Guest(transport, display.display, python=guests.PYTHON)
        assert (await guest.act(MOVE)).ok
        await guest.aclose()
        assert guest._path is not None
        return guest._path

    directory = Path(run(work())).parent
    assert directory.name != f"deskhand-hand-{os.geteuid()}"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


WORDS = ["python3", "-c", "a b"]


@pytest.mark.parametrize(
    ("transport", "command"),
    [
        (transports.subprocess(), WORDS),
        (transports.docker("box", "me"), ["docker", "exec", "--interactive", "--user", "me", "box", *WORDS]),
        (transports.podman("box"), ["podman", "exec", "--interactive", "box", *WORDS]),
        (transports.kubectl("pod"), ["kubectl", "exec", "--stdin", "pod", "--", *WORDS]),
        (
            transports.kubectl("pod", "space", "box"),
            ["kubectl", "exec", "--stdin", "--namespace", "space", "--container", "box", "pod", "--", *WORDS],
        ),
        (
            transports.ssh("me@host", ["-p", "2"]),
            ["ssh", "-T", "-o", "BatchMode=yes", "-p", "2", "--", "me@host", "python3 -c 'a b'"],
        ),
        (transports.bubblewrap(["--unshare-net"]), ["bwrap", "--unshare-net", *WORDS]),
    ],
)
def test_the_command_of_a_transport(transport: Transport, command: list[str]) -> None:
    assert transport.command(WORDS) == command


@pytest.mark.parametrize("make", [transports.docker, transports.podman, transports.kubectl, transports.ssh])
@pytest.mark.parametrize("name", ["", "-oProxyCommand=x"])
def test_a_name_that_is_an_option_is_refused(make: object, name: str) -> None:
    with pytest.raises(ValueError, match="is no name"):
        make(name)  # type: ignore[operator]
