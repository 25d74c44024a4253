"""What may be said to the launcher, and what is said to whoever says anything else. A real one, in another account."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest

from deskhand.computerd.launcher import peer, server
from deskhand.desktop.account import service_account
from tests.computerd.launchers import (
    PYTHON,
    RunningLauncher,
    as_account,
    everything,
    needs_root,
    running_launcher,
)
from tests.xservers import until

#: A peer in another account: its arguments are the socket and what to send, in hexadecimal.
PEER = """
import socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.settimeout(20)
peer.connect(sys.argv[1])
peer.sendall(bytes.fromhex(sys.argv[2]))
answer = b""
while piece := peer.recv(65536):
    answer += piece
sys.stdout.buffer.write(answer)
"""


@pytest.fixture(scope="module")
def launcher() -> Iterator[RunningLauncher]:
    with running_launcher() as launcher:
        launcher.entry("editor", launcher.script("exec sleep 60"), name="An Editor")
        launcher.entry("other", "sleep 60", "Comment=x", name="Twice")
        launcher.entry("another", "sleep 60", name="twice")
        launcher.entry("long", "sleep 60", name="\U0001f58c" * 255)
        yield launcher


# ---- what is answered


def test_the_list_is_that_of_the_desktops_account(launcher: RunningLauncher) -> None:
    answer = launcher.ask(b"list\n")
    assert answer["ok"] is True
    assert [row["id"] for row in answer["apps"]] == ["editor", "another", "other", "long"]
    assert answer["apps"][0]["path"] == str(launcher.data / "editor.desktop")
    assert str(launcher.data) in answer["searched"]


def test_a_list_needs_no_newline(launcher: RunningLauncher) -> None:
    assert launcher.ask(b"list") == launcher.ask(b"list\n") == launcher.ask(b"li", b"st\n")


def test_an_application_is_found_by_id_and_by_name(launcher: RunningLauncher) -> None:
    for name in ("editor", "EDITOR", "an editor", "editor.desktop"):
        assert launcher.ask(f"find {name}\n".encode())["id"] == "editor"


@pytest.mark.parametrize("verb", ["find", "launch"])
def test_unknown_and_ambiguous_names_are_refused_with_their_facts(launcher: RunningLauncher, verb: str) -> None:
    unknown = launcher.ask(f"{verb} Edtior\n".encode())
    assert (unknown["ok"], unknown["kind"]) == (False, "unknown")
    assert unknown["error"] == (
        "unknown application 'Edtior': ask for the list of applications; nearest are 'An Editor' (editor)"
    )
    assert unknown["facts"]["near"] == [{"id": "editor", "name": "An Editor"}]
    both = launcher.ask(f"{verb} TWICE\n".encode())
    assert (both["kind"], both["facts"]) == ("ambiguous", {"ids": ["another", "other"]})


def test_nothing_is_guessed(launcher: RunningLauncher) -> None:
    for name in ("edit", "An Edito", "An Editor ", " editor", "editor editor", "*"):
        assert "unknown application" in launcher.refusal(f"launch {name}\n".encode())


def test_a_path_or_an_option_is_no_name(launcher: RunningLauncher) -> None:
    for name in (str(launcher.data / "editor.desktop"), "../editor", "/bin/sh", "a\\b"):
        assert "is no application's name" in launcher.refusal(f"launch {name}\n".encode())
    assert "unknown application '--help'" in launcher.refusal(b"launch --help\n")
    assert launcher.ask(b"launched\n")["launches"] == []


def test_a_name_of_255_characters_of_four_bytes_reaches_it_whole(launcher: RunningLauncher) -> None:
    name = "\U0001f58c" * 255
    assert launcher.ask(f"find {name}\n".encode())["id"] == "long"
    assert launcher.client.find(name).name == name
    almost = name[:-1] + "\U0001f58d"
    assert "unknown application" in launcher.refusal(f"find {almost}\n".encode())


def test_256_characters_are_refused(launcher: RunningLauncher) -> None:
    for name in ("a" * 256, "\U0001f58c" * 256):
        answer = launcher.ask(f"launch {name}\n".encode())
        assert answer["kind"] == "invalid"
        assert answer["error"].startswith("an application's name has at most 255 characters, not 256")


# ---- what is refused


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (b"\n", "there is no such request: send one line, 'list', 'find NAME', 'launch NAME'"),
        (b"LIST\n", "no such request"),
        (b"lists\n", "no such request"),
        (b"list all\n", "no such request"),
        (b"list \n", "no such request"),
        (b"list\r\n", "no such request"),
        (b"launch\n", "no such request"),
        (b"launch\teditor\n", "no such request"),
        (b"quit editor\n", "no such request"),
        (b"GET / HTTP/1.1\r\n", "no such request"),
        (b"launch \n", "the application's name is empty"),
        (b"kill \n", "the application's name is empty"),
        (b"launch editor\nlaunch editor\n", "something follows the request"),
        (b"list\n\n", "something follows the request"),
        (b"launch \xff\xfe\n", "not UTF-8 at byte 7"),
        (b"\xff\n", "not UTF-8 at byte 0"),
        (b"launch \xf0\x9f\x96\n", "not UTF-8"),
        (b"launch \xed\xa0\x80\n", "not UTF-8"),
        (b"launch \xc0\xaf\n", "not UTF-8"),
        (b"launch edi\0tor\n", "holds a control character"),
        (b"launch editor\r\n", "holds a control character"),
        (b"launch \x1b[2J\n", "holds a control character"),
        (b"launch " + b"a" * 1092 + b"\n", "at most 255 characters"),
        (b"launch " + b"a" * 1093 + b"\n", "longer than 1100 bytes"),
        (b"launch " + b"a" * 100000 + b"\n", "longer than 1100 bytes"),
        (b"a" * 2000, "longer than 1100 bytes"),
    ],
)
def test_what_is_malformed_is_refused_with_a_sentence(
    launcher: RunningLauncher, request_: bytes, sentence: str
) -> None:
    said = launcher.refusal(request_)
    assert sentence in said
    assert "\n" not in said
    assert said.isprintable()
    assert launcher.ask(b"list")["ok"] is True
    assert launcher.records() == []


def test_a_request_that_is_cut_off_is_not_carried_out(launcher: RunningLauncher) -> None:
    with launcher.connect() as connection:
        connection.sendall(b"launch editor")
        connection.shutdown(socket.SHUT_WR)
        assert "ends without a newline" in json.loads(everything(connection))["error"]
    assert launcher.records() == []


def test_a_sender_of_two_steps_is_waited_for_and_blocks_nobody(launcher: RunningLauncher) -> None:
    with launcher.connect() as slow:
        slow.sendall(b"find edi")
        for _ in range(3):
            assert launcher.ask(b"list\n")["ok"] is True
        slow.sendall(b"tor\n")
        assert json.loads(everything(slow))["id"] == "editor"


def test_a_character_may_be_cut_between_two_steps(launcher: RunningLauncher) -> None:
    name = ("find " + "\U0001f58c" * 255 + "\n").encode()
    assert launcher.ask(name[:7], name[7:8], name[8:])["id"] == "long"


@pytest.mark.slow
def test_a_sender_that_does_not_end_is_told_so(launcher: RunningLauncher) -> None:
    assert f"not whole after {peer.PATIENCE:g} s" in launcher.refusal(b"launch edi")
    assert launcher.records() == []


@pytest.mark.slow
def test_an_open_connection_that_says_nothing_is_closed(launcher: RunningLauncher) -> None:
    before = launcher.log.read_text()
    with launcher.connect() as connection:
        assert everything(connection) == b""
    assert launcher.log.read_text() == before


def test_a_probe_is_neither_answered_nor_logged(launcher: RunningLauncher) -> None:
    launcher.ask(b"list")
    before = launcher.log.read_text()
    for _ in range(20):
        launcher.connect().close()
    with launcher.connect() as connection:
        connection.shutdown(socket.SHUT_WR)
        assert everything(connection) == b""
    assert launcher.client.connects()
    assert launcher.log.read_text() == before
    launcher.ask(b"kill editor\n")
    added = launcher.log.read_text()[len(before) :]
    assert added == f"launcher: kill 'editor' of uid {os.geteuid()}: done\n"


def test_what_is_asked_for_can_not_forge_a_line_of_the_log(launcher: RunningLauncher) -> None:
    before = len(launcher.log.read_text().splitlines())
    launcher.refusal("find x\u2028launcher: launch 'editor'\n".encode())
    launcher.refusal(b"find \x1b[31mred\n")
    added = launcher.log.read_text().splitlines()[before:]
    assert len(added) == 2
    assert all(line.isprintable() for line in added)


def test_many_open_connections_are_bounded_and_given_back(launcher: RunningLauncher) -> None:
    held = [launcher.connect() for _ in range(server.MOST_PEERS + 8)]
    try:
        # The last ones are closed unheard.
        assert [everything(one) for one in held[-8:]] == [b""] * 8
        assert threads_of(launcher) <= server.MOST_PEERS + 2
    finally:
        for one in held:
            one.close()
    assert until(lambda: threads_of(launcher) == 1)
    assert launcher.ask(b"list")["ok"] is True


def threads_of(launcher: RunningLauncher) -> int:
    assert launcher.process is not None
    return len(os.listdir(f"/proc/{launcher.process.pid}/task"))


def test_many_at_once_are_all_answered(launcher: RunningLauncher) -> None:
    answers: list[str] = []

    def ask() -> None:
        answers.append(launcher.ask(b"find editor\n")["id"])

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["editor"] * 16


# ---- whom it serves


def said_to(launcher: RunningLauncher, account: dict[str, object], request: bytes) -> bytes:
    done = subprocess.run(
        [PYTHON, "-c", PEER, launcher.path, request.hex()], capture_output=True, cwd="/", timeout=30, **account
    )  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr.decode()
    answer: bytes = done.stdout
    return answer


@needs_root
@pytest.mark.parametrize("request_", [b"list\n", b"launch editor\n", b"nonsense\n", b"a" * 5000 + b"\n"])
def test_the_desktops_own_account_is_refused_with_a_sentence(launcher: RunningLauncher, request_: bytes) -> None:
    answer = json.loads(said_to(launcher, as_account(launcher.account), request_))
    assert answer["ok"] is False
    if len(request_) < 1100:
        assert answer["error"] == f"this launcher serves the uid 0 only, not {launcher.account.uid}"
    assert launcher.records() == []


@needs_root
@pytest.mark.slow
def test_only_the_account_that_is_served_is_and_others_do_not_get_near() -> None:
    account = service_account()
    with running_launcher(account) as launcher:
        assert json.loads(said_to(launcher, as_account(account), b"list"))["ok"] is True
        assert "serves the uid" in launcher.refusal(b"list")  # root
        stranger = subprocess.run(
            [PYTHON, "-c", PEER, launcher.path, b"list\n".hex()],
            user=65534, group=65534, extra_groups=[], capture_output=True, text=True, cwd="/", timeout=30,
        )  # fmt: skip
        assert "PermissionError" in stranger.stderr


@needs_root
def test_strangers_can_not_use_up_the_places_of_the_one_who_is_served(launcher: RunningLauncher) -> None:
    holder = subprocess.Popen(
        [
            PYTHON, "-c",
            "import socket, sys\nheld = []\nfor _ in range(200):\n    one = socket.socket(socket.AF_UNIX)\n"
            "    one.connect(sys.argv[1]); held.append(one)\nprint('held', flush=True); sys.stdin.read()",
            launcher.path,
        ],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", **as_account(launcher.account),
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert threads_of(launcher) <= server.MOST_STRANGERS + 1
        assert launcher.ask(b"list\n")["ok"] is True
    finally:
        holder.communicate()
