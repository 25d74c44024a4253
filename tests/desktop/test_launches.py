"""Launching and quitting on every kind of desktop: real applications, and ones that behave as badly as real ones do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deskhand.hand import applications, launch_environment, state, windows
from deskhand.hand.errors import ActionFailed
from deskhand.hand.held import Ledger
from deskhand.hand.keyboard import Keyboard
from deskhand.hand.ping import Pings
from deskhand.hand.quit import quit_application
from tests.x_windows import CLIENT

from .conftest import run_on, wait_for
from .sessions import KINDS, Desk, one_desk

pytestmark = pytest.mark.long

_PACKAGE = Path(__file__).parents[2] / "src" / "deskhand"
_OPENED = ("window", True, True)
_RAISED = ("focus", True, True)


@pytest.fixture(scope="module", params=sorted(KINDS))
def whole(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """One desktop of each kind for all tests here. Nothing is left when it goes."""
    yield from one_desk(request.param)


@pytest.fixture
def desk(whole: Desk) -> Iterator[Desk]:
    """The desktop; what a test left open on it is closed."""
    kept = {one["id"] for one in windows.list_windows(whole.conn)}
    yield whole
    # Newest first, so that questions go before the windows that ask them.
    for one in reversed(windows.list_windows(whole.conn)):
        if one["id"] not in kept:
            for force in (True, False):
                try:
                    quit_application(whole.conn, window=one["id"], force=force, display=whole.display)
                    break
                except ActionFailed:
                    continue


@pytest.fixture(scope="module")
def client(whole: Desk) -> str:
    """The Exec line, up to its options, of a window that does as it is told, where the desktop's user can read it."""
    tree = Path(whole.desktop.directory) / "client"
    shutil.copytree(_PACKAGE, tree / "src" / "deskhand", ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "tests" / "fixtures").mkdir(parents=True)
    program = shutil.copy(CLIENT, tree / "tests" / "fixtures")
    return f"/usr/bin/python3 {program}"


def make_entry(desk: Desk, id: str, exec_line: str, *lines: str, name: str = "") -> str:
    """An entry of the user's own, as an installer would make it; gives its id."""
    folder = Path(desk.desktop.home) / ".local" / "share" / "applications"
    folder.mkdir(parents=True, exist_ok=True)
    body = ["[Desktop Entry]", "Type=Application", f"Name={name or id}", *lines, f"Exec={exec_line}"]
    (folder / f"{id}.desktop").write_text("\n".join(body) + "\n")
    return id


def make_script(desk: Desk, name: str, body: str) -> str:
    path = Path(desk.desktop.directory) / name
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)
    return str(path)


def brief(answer: dict[str, Any]) -> tuple[str, bool, bool]:
    return answer["outcome"], answer["matched"], answer["focused"]


def quit_all(desk: Desk, name: str, **options: Any) -> dict[str, Any]:
    return quit_application(desk.conn, app=name, entry=desk.entry(name), display=desk.display, timeout=15, **options)


def type_into(desk: Desk, text: str) -> None:
    Keyboard(desk.conn, Pings(desk.conn), Ledger(desk.conn)).type_text(text)


# ---- made for the test


def test_one_that_opens_a_window(desk: Desk, client: str) -> None:
    answer = desk.launch(make_entry(desk, "plain", f"{client} --title Plain"))
    assert brief(answer) == _OPENED
    assert answer["opener"] == desk.kind.opener
    assert os.stat(f"/proc/{answer['pid']}").st_uid == desk.desktop.uid
    assert quit_all(desk, "plain") == {"outcome": "closed", "windows": [answer["window"]["id"]]}
    assert "plain" not in {record["id"] for record in state.launched(desk.display)}


def test_one_that_forks_and_leaves(desk: Desk, client: str) -> None:
    script = make_script(desk, "forker", f"({client} --title Child --delay 0.3) &\nexit 0\n")
    answer = desk.launch(make_entry(desk, "forker", script))
    assert (brief(answer), answer["window"]["title"]) == (_OPENED, "Child")
    assert quit_all(desk, "forker")["outcome"] == "closed"


def test_one_that_dies_at_once(desk: Desk) -> None:
    script = make_script(desk, "dying", "echo no licence was found >&2\nexit 3\n")
    with pytest.raises(ActionFailed, match="ended before it opened a window, with exit status 3") as failed:
        desk.launch(make_entry(desk, "dying", script))
    assert failed.value.facts["last_words"] == "no licence was found"
    assert quit_all(desk, "dying") == {"outcome": "not_running"}


def test_one_whose_window_comes_late(desk: Desk, client: str) -> None:
    answer = desk.launch(make_entry(desk, "late", f"{client} --title Late --delay 4"))
    assert (brief(answer), answer["window"]["title"]) == (_OPENED, "Late")


def test_one_that_shows_a_splash_first(desk: Desk, client: str) -> None:
    answer = desk.launch(make_entry(desk, "splashing", f"{client} --title Document --splash 1"))
    assert (brief(answer), answer["window"]["title"]) == (_OPENED, "Document")


def test_one_that_opens_none_is_named_and_ended_by_force(desk: Desk) -> None:
    name = make_entry(desk, "windowless", make_script(desk, "windowless", "exec sleep 1000\n"))
    with pytest.raises(ActionFailed, match="opened no window within 2 s; it is still running"):
        desk.launch(name, timeout=2)
    with pytest.raises(ActionFailed, match="has no window to close"):
        quit_all(desk, name)
    assert quit_all(desk, name, force=True)["outcome"] == "closed"
    assert quit_all(desk, name) == {"outcome": "not_running"}


def test_one_whose_window_another_process_opens(desk: Desk, client: str) -> None:
    request = f"{desk.desktop.runtime_dir}/request"
    waiting = f"until [ -e {request} ]; do sleep 0.05; done; exec {client} --title Other --wm-class served,Served"
    server = run_on(desk.desktop, ["/bin/sh", "-c", waiting])
    try:
        script = make_script(desk, "asking", f"touch {request}\n")
        answer = desk.launch(make_entry(desk, "asking", script, "StartupWMClass=Served"))
        assert (brief(answer), answer["window"]["title"]) == (_OPENED, "Other")
        assert quit_application(desk.conn, window=answer["window"]["id"], display=desk.display)["outcome"] == "closed"
    finally:
        server.kill()
        server.wait()


def test_two_of_one_name(desk: Desk, client: str) -> None:
    ids = [make_entry(desk, f"twin-{side}", f"{client} --title {side}", name="Twin") for side in ("left", "right")]
    where = launch_environment.find(desk.conn, desk.display)
    with pytest.raises(applications.AmbiguousApplication, match="launch one by id: twin-left, twin-right"):
        applications.find("Twin", where.env)
    answers = [desk.launch(name) for name in ids]
    assert [(brief(answer), answer["window"]["title"]) for answer in answers] == [(_OPENED, "left"), (_OPENED, "right")]
    assert quit_all(desk, ids[0])["windows"] == [answers[0]["window"]["id"]]
    assert quit_all(desk, ids[1])["windows"] == [answers[1]["window"]["id"]]


def test_one_that_runs_in_a_terminal(desk: Desk) -> None:
    proof = Path(desk.desktop.runtime_dir) / "ran"
    proof.unlink(missing_ok=True)
    script = make_script(desk, "texty", f"tty > {proof}.new && mv {proof}.new {proof}\nexec sleep 1000\n")
    answer = desk.launch(make_entry(desk, "texty", script, "Terminal=true"))
    assert brief(answer) == _OPENED
    assert answer["opener"].startswith("Exec line in ")
    wait_for(proof.exists)
    assert proof.read_text().startswith("/dev/pts/")
    assert quit_all(desk, "texty", force=True)["outcome"] == "closed"


# ---- real ones


@pytest.mark.parametrize(
    "name",
    [
        "firefox-esr", "libreoffice-writer", "thunar", "caja-browser", "pcmanfm-qt", "org.gnome.Terminal",
        "org.gnome.Calculator", "xfce4-terminal", "mate-terminal", "qterminal",
    ],
)  # fmt: skip
def test_opened_a_second_time_it_opens_a_second_window(desk: Desk, name: str) -> None:
    first = desk.launch(name)
    between = desk.launch("debian-xterm")
    second = desk.launch(name)
    assert (brief(first), brief(between), brief(second)) == (_OPENED, _OPENED, _OPENED)
    assert first["window"]["id"] != second["window"]["id"]
    answer = quit_all(desk, name)
    if answer["outcome"] == "asked":
        assert name == "qterminal"  # which asks whether its shell may end
        answer = quit_all(desk, name, force=True)
    else:
        assert answer["windows"] == [first["window"]["id"], second["window"]["id"]]
    assert answer["outcome"] == "closed"
    assert quit_all(desk, "debian-xterm")["windows"] == [between["window"]["id"]]


@pytest.mark.parametrize("name", ["org.gnome.TextEditor", "org.gnome.Nautilus"])
def test_activated_on_the_bus_it_opens_and_then_is_raised(desk: Desk, name: str) -> None:
    first = desk.launch(name)
    assert first["opener"] == "D-Bus activation"
    between = desk.launch("debian-xterm")
    second = desk.launch(name)
    assert (brief(first), brief(between)) == (_OPENED, _OPENED)
    if brief(second) == _OPENED:
        assert name == "org.gnome.Nautilus"  # which opens another until it has loaded the first
        assert quit_all(desk, name)["windows"] == [first["window"]["id"], second["window"]["id"]]
    else:
        assert brief(second) == _RAISED
        assert first["window"]["id"] == second["window"]["id"]
        assert quit_all(desk, name)["windows"] == [first["window"]["id"]]


@pytest.mark.parametrize(
    "name", ["org.xfce.mousepad", "pluma", "featherpad", "org.gnome.TextEditor", "libreoffice-writer"]
)
def test_unsaved_text_is_asked_about(desk: Desk, name: str) -> None:
    answer = desk.launch(name)
    assert brief(answer) == _OPENED
    window = answer["window"]["id"]
    untouched = windows.get_window(desk.conn, window).title
    type_into(desk, "Hello")
    # Most mark a changed document in its title; LibreOffice counts its words elsewhere.
    if name != "libreoffice-writer":
        assert windows.await_state(desk.conn, lambda: windows.get_window(desk.conn, window).title != untouched, 15)
    asked = quit_all(desk, name)
    assert asked["outcome"] == "asked"
    assert asked["windows"] == [window]
    dialog = windows.get_window(desk.conn, asked["dialog"]["id"])
    assert dialog.transient_for == window or dialog.type == "dialog"
    if answer["pid"] is None:
        # The session bus started it; it is asked by hand, and what it asks is answered there.
        with pytest.raises(ActionFailed, match="not ended by force"):
            quit_all(desk, name, force=True)
        assert quit_application(desk.conn, window=dialog.id, display=desk.display)["outcome"] in ("closed", "asked")
        server = windows.get_window(desk.conn, window).pids[0]
        assert run_on(desk.desktop, ["kill", str(server)]).wait(10) == 0
        assert windows.await_state(desk.conn, lambda: window not in windows.window_ids(desk.conn), 10)
    else:
        assert quit_all(desk, name, force=True)["outcome"] == "closed"
    assert window not in windows.window_ids(desk.conn)
