"""The list of windows, waiting for one, and acting on one: on real servers, with and without a window manager."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import pytest
from tests.x_windows import x_window

from deskhand.hand import window_actions, windows
from deskhand.hand.errors import ActionFailed
from deskhand.hand.window_properties import decode_compound_text, read_windows
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer

Managed = tuple[Connection, XServer]


@pytest.fixture
def openbox(openbox_display: XServer) -> Iterator[Managed]:
    with Connection.open(openbox_display.display) as conn:
        yield conn, openbox_display


@pytest.fixture
def bare(display: XServer) -> Iterator[Managed]:
    with Connection.open(display.display) as conn:
        yield conn, display


# ---- the list


def test_lists_what_a_window_says_about_itself(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "Grüße – 世界", "--wm-class", "some,Thing", "--pid") as window:
        assert windows.await_state(conn, lambda: windows.active_window(conn) == window, 5.0)
        (facts,) = windows.list_windows(conn)
        assert facts["id"] == window
        assert (facts["title"], facts["app_id"], facts["class"]) == ("Grüße – 世界", "Thing", "Thing")
        assert (facts["type"], facts["viewable"], facts["active"], facts["desktop"]) == ("normal", True, True, 0)
        assert facts["rect"][2:] == [300, 200]
        assert facts["frame"] != [0, 0, 0, 0]
        assert os.path.exists(f"/proc/{facts['pid']}")
        geometry = core.translate_coordinates(conn, window, conn.root, 0, 0)
        assert facts["rect"][:2] == list(geometry[1:])
        assert windows.window_facts(conn, window) == facts
        assert windows.active_window(conn) == window
    assert windows.window_manager(conn) == "Openbox"
    assert windows.managed(conn)


def test_falls_back_on_the_tree_without_a_window_manager(bare: Managed) -> None:
    conn, server = bare
    with x_window(conn, server, "alone") as window, x_window(conn, server, "menu", "--override", wait=False):
        assert windows.window_manager(conn) is None
        assert not windows.managed(conn)
        assert [facts["id"] for facts in windows.list_windows(conn)] == [window]
        assert windows.window_facts(conn, window)["desktop"] is None


def test_a_dead_window_manager_counts_as_none(bare: Managed) -> None:
    conn, _ = bare
    check = conn.atom("_NET_SUPPORTING_WM_CHECK")
    core.change_property(conn, conn.root, check, core.ATOM_WINDOW, 32, struct.pack("=I", 0x1234567))
    assert windows.window_manager(conn) is None


def test_pid_of_another_host_is_not_ours(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "remote", "--pid") as window:
        real = windows.window_facts(conn, window)["pid"]
        core.change_property(conn, window, conn.atom("WM_CLIENT_MACHINE"), core.ATOM_STRING, 8, b"elsewhere.example")
        core.change_property(conn, window, conn.atom("_NET_WM_PID"), core.ATOM_CARDINAL, 32, struct.pack("=I", 1))
        assert windows.window_facts(conn, window)["pid"] == real  # the X server's word


@pytest.mark.parametrize(
    ("kind", "value", "title"),
    [
        ("STRING", "naïve".encode("latin-1"), "naïve"),
        ("STRING", "naïve ✓".encode(), "naïve ✓"),
        ("UTF8_STRING", "日本".encode(), "日本"),
        ("UTF8_STRING", b"broken \xff", "broken �"),
        ("COMPOUND_TEXT", b"caf\xe9", "café"),
        ("COMPOUND_TEXT", b"\x1b-B\xb1", "ą"),
        ("COMPOUND_TEXT", b"a \x1b$(B\x46\x7c\x4b\x5c\x1b(B b", "a 日本 b"),
        ("COMPOUND_TEXT", b"\x1b%G\xe2\x82\xac\x1b%@ x", "€ x"),
        ("UTF8_STRING", b"ends\0here", "ends"),
    ],
)
def test_title_in_the_encoding_of_its_type(bare: Managed, kind: str, value: bytes, title: str) -> None:
    conn, _ = bare
    window = core.create_window(conn)
    core.change_property(conn, window, core.ATOM_WM_NAME, conn.atom(kind), 8, value)
    assert read_windows(conn, [window])[0].title == title


def test_compound_text_never_raises() -> None:
    for byte in range(256):
        for escape in (b"\x1b", b"\x1b$", b"\x1b$(", b"\x1b%", b"\x1b-", b""):
            assert isinstance(decode_compound_text(b"x" + escape + bytes([byte]) + b"\x80\xff"), str)


def test_properties_of_the_wrong_kind_do_no_harm(bare: Managed) -> None:
    conn, server = bare
    with x_window(conn, server, "odd") as window:
        for name in ("_NET_WM_PID", "_NET_WM_STATE", "_NET_WM_WINDOW_TYPE", "WM_STATE", "WM_HINTS", "WM_PROTOCOLS"):
            core.change_property(conn, window, conn.atom(name), core.ATOM_STRING, 8, b"text")
        core.change_property(conn, window, conn.atom("_NET_WM_STATE"), core.ATOM_ATOM, 32, struct.pack("=I", 99999999))
        core.change_property(conn, window, conn.atom("WM_CLASS"), core.ATOM_STRING, 8, b"one")
        facts = windows.window_facts(conn, window)
        assert (facts["app_id"], facts["type"]) == ("one", "normal")
        conn.sync()


def test_a_window_that_is_gone_is_left_out_and_leaves_no_reply(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "stays") as window:
        found = read_windows(conn, [0x7654321, window, 0x7654322])
        assert [one.id for one in found] == [window]
        assert not conn._replies
        conn.sync()
    with pytest.raises(ActionFailed, match="no window 123:"):
        windows.window_facts(conn, 123)


def test_finds_by_part_of_the_title_and_by_whole_app(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "Report.TXT - editor", "--wm-class", "ed,Editor") as window:
        assert [one["id"] for one in windows.find(conn, title="report.txt")] == [window]
        assert [one["id"] for one in windows.find(conn, app="editor")] == [window]
        assert [one["id"] for one in windows.find(conn, app="ED")] == [window]
        assert windows.find(conn, app="edit") == []
        assert windows.find(conn, title="report", app="nothing") == []


# ---- waiting


def test_wait_window_sees_what_is_there_already(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "there") as window:
        assert windows.wait_window(conn, title="there", focused=True, timeout=0)["id"] == window


def test_wait_window_waits_for_a_late_one(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "late one", "--delay", "0.7", wait=False):
        found = windows.wait_window(conn, title="LATE", app="xwindow", focused=True)
        assert found["viewable"]
        assert found["painted"]


def test_wait_window_fails_on_time_and_says_what_is_missing(openbox: Managed) -> None:
    conn, server = openbox
    with pytest.raises(ActionFailed, match=r"no window with title 'nowhere' was ready within 0\.2 s: no such window"):
        windows.wait_window(conn, title="nowhere", timeout=0.2)
    with x_window(conn, server, "first"), x_window(conn, server, "second") as second:
        window_actions.activate(conn, second)
        with pytest.raises(ActionFailed, match="'first' is shown but has not the focus"):
            windows.wait_window(conn, title="first", focused=True, timeout=0.2)
    with (
        x_window(conn, server, "small", "--iconic", wait=False),
        pytest.raises(ActionFailed, match="'small' is there but not shown"),
    ):
        windows.wait_window(conn, title="small", timeout=1.0)
    with pytest.raises(ValueError, match="title or an app"):
        windows.wait_window(conn)


def test_wait_window_waits_until_it_is_painted(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "slow paint", "--blank", "0.5", wait=False):
        found = windows.wait_window(conn, title="slow paint")
        assert found["painted"]
        assert not windows.one_colour(conn, found["id"])


def test_wait_window_takes_a_window_that_is_meant_to_be_blank(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "empty", "--never-paint", wait=False):
        found = windows.wait_window(conn, title="empty")
        assert not found["painted"]
        assert windows.one_colour(conn, found["id"])


def test_wait_window_takes_a_blank_window_that_was_there_before(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "empty", "--never-paint", wait=False):
        first = windows.wait_window(conn, title="empty")
        again = windows.wait_window(conn, title="empty", timeout=0)
        assert (again["id"], again["painted"]) == (first["id"], False)


def test_wait_window_notices_a_changed_title(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "before") as window, Connection.open(server.display) as other:

        def rename() -> bool:
            # Sent when the wait has begun: the first look found nothing.
            name = other.atom("_NET_WM_NAME")
            core.change_property(other, window, name, other.atom("UTF8_STRING"), 8, b"after")
            other.sync()
            return True

        looked: list[bool] = []
        original = windows.read_all

        def read_all(conn: Connection) -> object:
            found = original(conn)
            if not looked:
                looked.append(rename())
            return found

        windows.read_all = read_all  # type: ignore[assignment]
        try:
            assert windows.wait_window(conn, title="after", timeout=5)["id"] == window
        finally:
            windows.read_all = original


# ---- acting


def test_activate_moves_the_focus_back_and_forth(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "one") as one, x_window(conn, server, "two") as two:
        for window in (one, two, two, one):
            assert window_actions.activate(conn, window) == {"window": window, "focused": True}
            assert windows.active_window(conn) == window
            assert windows.has_focus(conn, window)


def test_activate_restores_a_minimised_window_and_follows_it_to_its_desktop(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "one") as one, x_window(conn, server, "two") as two:
        core.send_client_message(
            conn,
            conn.root,
            core.SUBSTRUCTURE_NOTIFY | core.SUBSTRUCTURE_REDIRECT,
            one,
            conn.atom("WM_CHANGE_STATE"),
            [3],
        )
        core.send_client_message(
            conn,
            conn.root,
            core.SUBSTRUCTURE_NOTIFY | core.SUBSTRUCTURE_REDIRECT,
            two,
            conn.atom("_NET_WM_DESKTOP"),
            [1, 2],
        )
        assert windows.await_state(conn, lambda: "hidden" in windows.window_facts(conn, one)["state"], 5)
        assert windows.await_state(conn, lambda: windows.window_facts(conn, two)["desktop"] == 1, 5)
        assert window_actions.activate(conn, one)["focused"]
        assert windows.window_facts(conn, one)["viewable"]
        assert window_actions.activate(conn, two)["focused"]
        assert windows.current_desktop(conn) == 1


def test_activate_a_window_that_wants_no_input(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "clock", "--no-input") as window, x_window(conn, server, "other"):
        try:
            answer = window_actions.activate(conn, window, timeout=1)
        except ActionFailed:
            return  # a window manager may refuse to make such a window active
        assert answer["focused"] is False


def test_activate_without_a_window_manager(bare: Managed) -> None:
    conn, server = bare
    with x_window(conn, server, "one") as one, x_window(conn, server, "two") as two:
        for window in (one, two, one):
            assert window_actions.activate(conn, window)["focused"]
            assert windows.active_window(conn) == window


def test_activate_says_who_is_active_when_it_fails(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "shown"), x_window(conn, server, "menu", "--override", wait=False):
        assert windows.await_state(conn, lambda: len(_children(conn, "menu")) == 1, 5)
        (menu,) = _children(conn, "menu")
        with pytest.raises(ActionFailed, match=r"'menu' did not become active within 0.5 s: window \d+ 'shown' is"):
            window_actions.activate(conn, menu, timeout=0.5)
    with pytest.raises(ActionFailed, match="no window 77:"):
        window_actions.activate(conn, 77)


def _children(conn: Connection, title: str) -> list[int]:
    core.select_input(conn, conn.root, core.SUBSTRUCTURE_NOTIFY)
    found = read_windows(conn, core.query_tree(conn, conn.root)[2])
    return [one.id for one in found if one.title == title and one.viewable]


@pytest.mark.parametrize("managed", [True, False])
def test_close(request: pytest.FixtureRequest, managed: bool) -> None:
    conn, server = request.getfixturevalue("openbox" if managed else "bare")
    with x_window(conn, server, "one") as one, x_window(conn, server, "two") as two:
        assert window_actions.close(conn, one) == {"window": one, "closed": True}
        assert [facts["id"] for facts in windows.list_windows(conn)] == [two]
        with pytest.raises(ActionFailed, match=f"no window {one}:"):
            window_actions.close(conn, one)


def test_close_tells_of_the_dialog_that_comes_up_instead(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "unsaved", "--on-close", "dialog") as window:
        for _ in range(2):  # the second time the dialog is open already
            with pytest.raises(ActionFailed, match=r"still open: it asks in window .* 'Save changes\?'") as failed:
                window_actions.close(conn, window)
            dialog = failed.value.facts["dialog"]
            assert dialog["title"] == "Save changes?"
            assert windows.window_facts(conn, dialog["id"])["type"] == "dialog"


def test_close_fails_on_time_when_the_window_does_not_listen(openbox: Managed) -> None:
    conn, server = openbox
    with (
        x_window(conn, server, "deaf", "--on-close", "ignore") as window,
        pytest.raises(ActionFailed, match=r"'deaf' is still open after 0\.3 s"),
    ):
        window_actions.close(conn, window, timeout=0.3)


def test_close_without_window_manager_and_without_delete_protocol(bare: Managed) -> None:
    conn, server = bare
    with (
        x_window(conn, server, "plain", "--on-close", "nothing") as window,
        pytest.raises(ActionFailed, match="can not be asked to close"),
    ):
        window_actions.close(conn, window, timeout=0.3)


@pytest.mark.parametrize("managed", [True, False])
def test_resize_reads_the_place_back(request: pytest.FixtureRequest, managed: bool) -> None:
    conn, server = request.getfixturevalue("openbox" if managed else "bare")
    with x_window(conn, server, "box") as window:
        facts = window_actions.resize(conn, window, x=200, y=150, width=400, height=250)
        assert facts["rect"] == [200, 150, 400, 250]
        assert facts["exact"]
        assert windows.window_facts(conn, window)["rect"] == [200, 150, 400, 250]
        assert window_actions.resize(conn, window, width=500)["rect"] == [200, 150, 500, 250]
        assert window_actions.resize(conn, window, y=160)["rect"] == [200, 160, 500, 250]
        assert window_actions.resize(conn, window, y=160)["exact"]  # it is there already


def test_resize_restores_a_maximised_window(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "box") as window:
        states = [conn.atom("_NET_WM_STATE_MAXIMIZED_VERT"), conn.atom("_NET_WM_STATE_MAXIMIZED_HORZ")]
        core.send_client_message(
            conn, conn.root, core.SUBSTRUCTURE_NOTIFY | core.SUBSTRUCTURE_REDIRECT, window,
            conn.atom("_NET_WM_STATE"), [1, *states, 2],
        )  # fmt: skip
        assert windows.await_state(conn, lambda: "maximized_vert" in windows.window_facts(conn, window)["state"], 5)
        facts = window_actions.resize(conn, window, width=320, height=240)
        assert facts["rect"][2:] == [320, 240]
        assert facts["state"] == []


def test_resize_says_when_the_window_takes_another_size(openbox: Managed) -> None:
    conn, server = openbox
    with x_window(conn, server, "cells") as window:
        # WM_NORMAL_HINTS: at least 200 wide, in steps of 10.
        hints = [0] * 18
        hints[0], hints[5], hints[6], hints[9], hints[10] = 16 | 64, 200, 100, 10, 10
        core.change_property(
            conn, window, conn.atom("WM_NORMAL_HINTS"), conn.atom("WM_SIZE_HINTS"), 32, struct.pack("=18I", *hints)
        )
        facts = window_actions.resize(conn, window, width=407)
        assert facts["rect"][2] == 400
        assert facts["exact"] is False
    with x_window(conn, server, "refusals") as window:
        with pytest.raises(ValueError, match="needs"):
            window_actions.resize(conn, window)
        with pytest.raises(ValueError, match="at least 1 pixel"):
            window_actions.resize(conn, window, width=0)
