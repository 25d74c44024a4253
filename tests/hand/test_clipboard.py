"""The clipboard, against xclip, xsel and GTK, with texts of every size."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.toolkits import toolkit_window

from deskhand.hand import clipboard
from deskhand.hand.clipboard_owner import PIECE, SelectionOwner
from deskhand.hand.errors import ActionFailed, DisplayLost
from deskhand.hand.held import Ledger
from deskhand.hand.keyboard import Keyboard, parse_keys
from deskhand.hand.ping import Pings
from deskhand.hand.x11 import Connection, Event, core
from deskhand.testing import XServer

TEXTS = {
    "empty": "",
    "plain": "plain text",
    "lines": "a\nb\r\nc\n\n",
    "scripts": "é ж 漢 😀 ‮rtl‬ \u0301",
    "nul": "a\0b",
    "exact piece": "p" * PIECE,
    "long": "0123456789abcdef" * (1 << 16),  # 1 MiB
    "long scripts": "жу漢😀" * 100_000,
}


@pytest.fixture
def conn(display: XServer) -> Iterator[Connection]:
    with Connection.open(display.display) as connection:
        yield connection


def need(tool: str) -> str:
    found = shutil.which(tool)
    if not found:
        pytest.skip(f"{tool} is not installed")
    return found


def owned(conn: Connection, timeout: float = 5.0) -> bool:
    """Wait until another program has put something on the clipboard: it goes on by itself when it returns."""
    deadline = time.monotonic() + timeout
    while not core.get_selection_owner(conn, conn.atom("CLIPBOARD")) and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(core.get_selection_owner(conn, conn.atom("CLIPBOARD")))


def owners() -> list[int]:
    """Processes that keep a clipboard."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"clipboard_owner" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
        except OSError:
            continue
    return found


def ended(pids: list[int], timeout: float = 10.0) -> bool:
    deadline = time.monotonic() + timeout
    while set(pids) & set(owners()) and time.monotonic() < deadline:
        time.sleep(0.02)  # they are nobody's children here
    return not set(pids) & set(owners())


def test_empty_clipboard_is_none(conn: Connection) -> None:
    assert clipboard.get_text(conn) is None
    assert clipboard.get_targets(conn) == []


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_set_is_read_by_us_xclip_and_xsel(display: XServer, conn: Connection, name: str) -> None:
    text = TEXTS[name]
    clipboard.set_text(conn, text)
    assert clipboard.get_text(conn) == text
    for command in (["xclip", "-selection", "clipboard", "-o"], ["xsel", "--clipboard", "--output"]):
        if "\0" in text and command[0] == "xsel":
            continue  # it ends at the first NUL
        done = subprocess.run(
            [need(command[0]), *command[1:]], env=display.env, capture_output=True, timeout=20, check=True
        )
        assert done.stdout.decode() == text, command[0]


@pytest.mark.parametrize("name", ["plain", "lines", "scripts", "long", "long scripts"])
@pytest.mark.parametrize("tool", ["xclip", "xsel"])
def test_what_others_set_is_read(display: XServer, conn: Connection, tool: str, name: str) -> None:
    command = {"xclip": ["xclip", "-selection", "clipboard", "-i"], "xsel": ["xsel", "--clipboard", "--input"]}[tool]
    subprocess.run(
        [need(command[0]), *command[1:]],
        env=display.env,
        input=TEXTS[name].encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    assert owned(conn)
    assert clipboard.get_text(conn) == TEXTS[name]


def test_a_picture_is_no_text(display: XServer, conn: Connection) -> None:
    command = [need("xclip"), "-selection", "clipboard", "-t", "image/png", "-i"]
    subprocess.run(command, env=display.env, input=b"\x89PNG", stdout=subprocess.DEVNULL, check=True)
    assert owned(conn)
    assert clipboard.get_text(conn) is None
    assert clipboard.get_targets(conn) == ["TARGETS", "image/png"]


def test_targets_and_time_as_icccm_wants(display: XServer, conn: Connection) -> None:
    clipboard.set_text(conn, "é")
    targets = clipboard.get_targets(conn)
    assert {"TARGETS", "TIMESTAMP", "MULTIPLE", "UTF8_STRING", "STRING", "TEXT"} <= set(targets)
    clipboard.set_text(conn, "漢")
    assert "STRING" not in clipboard.get_targets(conn), "Latin-1 can not hold it"


def test_half_a_surrogate_pair_is_refused(conn: Connection) -> None:
    with pytest.raises(ActionFailed, match="character 3 of the text is half of a surrogate pair"):
        clipboard.set_text(conn, "ab\ud83d")


def test_multiple(conn: Connection, display: XServer) -> None:
    clipboard.set_text(conn, "é")
    window = core.create_window(conn)
    names = ["UTF8_STRING", "_A", "image/png", "_B", "STRING", "_C"]
    atoms = conn.atoms(names)
    pairs = conn.atom("_PAIRS")
    value = b"".join(atom.to_bytes(4, sys.byteorder) for atom in atoms)
    core.change_property(conn, window, pairs, conn.atom("ATOM_PAIR"), 32, value)
    answers = []
    with conn.subscribe(lambda event: answers.append(event) if event.name == "SelectionNotify" else None):
        core.convert_selection(
            conn, window, conn.atom("CLIPBOARD"), conn.atom("MULTIPLE"), pairs, core.server_time(conn)
        )
        assert conn.wait(lambda: answers, 5)
    assert answers[0]["property"] == pairs
    assert core.get_property(conn, window, pairs).cardinals() == [*atoms[:2], 0, *atoms[3:]]
    assert core.get_property(conn, window, conn.atom("_A")).value == "é".encode()
    assert core.get_property(conn, window, conn.atom("_C")).value == "é".encode("latin-1")


def test_the_text_is_in_no_argument_list_and_no_descriptor_is_kept(display: XServer, conn: Connection) -> None:
    before = set(owners())
    clipboard.set_text(conn, "hunter2 is secret")
    (pid,) = set(owners()) - before
    assert b"hunter2" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert b"hunter2" not in Path(f"/proc/{pid}/environ").read_bytes()
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    assert sorted(link.partition(":")[0] for link in links) == [os.devnull] * 3 + ["socket"]
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == "/"


def test_it_outlives_the_process_that_set_it_and_ends_with_the_clipboard(display: XServer, conn: Connection) -> None:
    before = set(owners())
    code = (
        "import sys; from deskhand.hand import clipboard; from deskhand.hand.x11 import Connection\n"
        "with Connection.open(sys.argv[1]) as c: clipboard.set_text(c, 'left behind')"
    )
    subprocess.run([sys.executable, "-c", code, display.display], env={**os.environ, "PYTHONPATH": "src"}, check=True)
    assert clipboard.get_text(conn) == "left behind"
    pids = sorted(set(owners()) - before)
    assert len(pids) == 1
    clipboard.set_text(conn, "another")
    assert ended(pids)
    assert clipboard.get_text(conn) == "another"


def test_many_leave_one_process_and_no_zombie(display: XServer, conn: Connection) -> None:
    before = set(owners())
    for number in range(10):
        clipboard.set_text(conn, str(number))
    assert clipboard.get_text(conn) == "9"
    now = set(owners()) - before
    last = core.get_selection_owner(conn, conn.atom("CLIPBOARD"))
    assert last
    deadline = time.monotonic() + 10
    while len(now) > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
        now = set(owners()) - before
    assert len(now) == 1
    with pytest.raises(ChildProcessError):
        os.waitpid(next(iter(now)), os.WNOHANG)


def test_the_owner_ends_with_the_server() -> None:
    from deskhand.testing import xvfb

    before = set(owners())
    with xvfb() as server, Connection.open(server.display) as conn:
        clipboard.set_text(conn, "x")
        pids = sorted(set(owners()) - before)
        assert pids
    assert ended(pids)


def test_with_a_cookie(tmp_path: Path) -> None:
    from deskhand.testing import xvfb

    with xvfb(auth=True) as server, Connection.open(server.display, server.xauthority) as conn:
        clipboard.set_text(conn, "behind a cookie")
        assert clipboard.get_text(conn) == "behind a cookie"
        with pytest.raises(ActionFailed, match=r"the text is not on the clipboard: .*refuses this connection"):
            clipboard.set_text(conn, "x", str(tmp_path / "none"))


def test_an_owner_that_hangs_is_an_error_in_time(display: XServer, conn: Connection) -> None:
    with Connection.open(display.display) as hanging:
        window = core.create_window(hanging)
        core.set_selection_owner(hanging, window, hanging.atom("CLIPBOARD"), core.server_time(hanging))
        hanging.sync()
        with pytest.raises(ActionFailed, match=r"did not answer within 0\.2 s"):
            clipboard.get_text(conn, timeout=0.2)


def test_an_owner_that_stops_half_way_is_an_error_in_time(display: XServer, conn: Connection) -> None:
    before = set(owners())
    clipboard.set_text(conn, TEXTS["long"])
    (pid,) = set(owners()) - before
    pieces: list[int] = []

    def stop(event: Event) -> None:
        if event.name == "PropertyNotify" and event["state"] == 0:
            pieces.append(1)
            if len(pieces) == 4:  # the offered forms, the length, and two of four pieces
                os.kill(pid, signal.SIGSTOP)

    with conn.subscribe(stop), pytest.raises(ActionFailed, match="did not answer within"):
        clipboard.get_text(conn, timeout=0.3)
    os.kill(pid, signal.SIGKILL)


def test_requestors_that_vanish_do_no_harm(display: XServer, conn: Connection) -> None:
    clipboard.set_text(conn, TEXTS["long"])
    for _ in range(100):
        with Connection.open(display.display) as gone:
            window = core.create_window(gone)
            atom = gone.atom("CLIPBOARD")
            core.convert_selection(gone, window, atom, gone.atom("UTF8_STRING"), gone.atom("_X"), 0)
            gone.sync()
    assert clipboard.get_text(conn) == TEXTS["long"]


# -- paste ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gtk", "qt", "tk"])
@pytest.mark.parametrize("old", [None, "what was there"])
def test_paste_gets_in_and_gives_the_clipboard_back(
    openbox_display: XServer, tmp_path: Path, kind: str, old: str | None
) -> None:
    text = "pasted é 漢 😀\nline\n"
    with (
        toolkit_window(openbox_display, kind, tmp_path / "log") as window,
        Connection.open(openbox_display.display) as conn,
    ):
        if old is not None:
            clipboard.set_text(conn, old)
        facts = Keyboard(conn, Pings(conn), Ledger(conn)).type_text(text, method="paste")
        assert facts["method"] == "paste"
        assert facts["confirmed"] is (kind != "tk")
        assert facts["clipboard"] == ("empty" if old is None else "restored")
        Keyboard(conn, Pings(conn), Ledger(conn)).key(parse_keys("x"))  # Tk writes its log at the next key
        assert window.shows(text + "x"), window.text
        assert clipboard.get_text(conn) == old


def test_paste_of_a_long_text(openbox_display: XServer, tmp_path: Path) -> None:
    text = TEXTS["long scripts"]
    with (
        toolkit_window(openbox_display, "gtk", tmp_path / "log") as window,
        Connection.open(openbox_display.display) as conn,
    ):
        facts = Keyboard(conn, Pings(conn), Ledger(conn)).type_text(text, time.monotonic() + 30, method="paste")
        assert facts["typed"] == len(text)
        assert window.shows(text, 30)


def test_paste_nobody_fetches_is_an_error_and_the_clipboard_comes_back(display: XServer) -> None:
    with Connection.open(display.display) as conn:
        window = core.create_window(conn, 10, 10, 99, 99, override_redirect=True, background=0)
        core.map_window(conn, window)
        core.set_input_focus(conn, window)
        conn.sync()
        clipboard.set_text(conn, "old")
        with pytest.raises(ActionFailed, match="did not fetch the clipboard") as failed:
            Keyboard(conn, Pings(conn), Ledger(conn)).type_text("hunter2", time.monotonic() + 0.3, method="paste")
        assert "hunter2" not in str(failed.value)
        assert failed.value.sent == "part"
        assert clipboard.get_text(conn) == "old"


def test_what_somebody_else_copied_meanwhile_stays(display: XServer, conn: Connection) -> None:
    owner = SelectionOwner(conn, "ours")
    assert owner.owned
    with Connection.open(display.display) as other:
        clipboard.set_text(other, "theirs")
        assert conn.wait(lambda: owner.finished, 5)
        owner.close()
        conn.sync()
        assert clipboard.get_text(other) == "theirs"


def test_an_owner_whose_text_has_no_end_is_an_error_in_time(
    display: XServer, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clipboard, "WHOLE_SECONDS", 0.5)
    ended = threading.Event()
    with Connection.open(display.display) as owner:
        window = core.create_window(owner)
        text, incr = owner.atoms(["UTF8_STRING", "INCR"])
        core.set_selection_owner(owner, window, owner.atom("CLIPBOARD"), core.server_time(owner))

        def take(event: Event) -> None:
            if event.name == "SelectionRequest":
                prop = event["property"] if event["target"] == text else 0
                if prop:
                    core.select_input(owner, event["requestor"], core.PROPERTY_CHANGE)
                    core.change_property(owner, event["requestor"], prop, incr, 32, struct.pack("=I", 1))
                fields = [event[name] for name in ("time", "requestor", "selection", "target")]
                core.send_event(owner, event["requestor"], 0, struct.pack("=BBHIIIII8x", 31, 0, 0, *fields, prop))
            elif event.name == "PropertyNotify" and event["state"] == 1:
                core.change_property(owner, event["window"], event["atom"], text, 8, b"x", ignore=True)
            owner.flush()

        owner.subscribe(take)
        owner.sync()

        def serve() -> None:
            with contextlib.suppress(DisplayLost):
                owner.wait(ended.is_set, 20.0)

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            with pytest.raises(ActionFailed, match="was not done with its text"):
                clipboard.get_text(conn)
        finally:
            ended.set()
            owner.cut()
            serving.join()
