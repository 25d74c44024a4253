"""computerd's end: whatever answers in the launcher's place, it is bounded, checked and told in one sentence."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deskhand.computerd.launcher import client as client_module
from deskhand.computerd.launcher.client import LauncherClient
from deskhand.hand.applications import AmbiguousApplication, ApplicationError, Entry, InvalidName, UnknownApplication
from deskhand.hand.errors import ActionFailed, DeskhandError, NoDisplay, SetupError, Unsupported
from deskhand.hand.launcher import Launching
from tests.xservers import open_fds, until

MARK = "0123456789abcdef" * 2
ENTRY = Entry("one", "/one.desktop", "One", {}, True, True)
FIRST: dict[str, Any] = {
    "ok": True, "pid": 4242, "startup_id": "deskhand-1-host-x_TIME5", "startup_time": 5, "mark": MARK, "keeper": 4241,
    "opener": "Exec line", "program": "/bin/one", "direct": True, "note": None, "failed": None, "exit": None,
    "failure": None, "over": False, "last_words": "",
}  # fmt: skip


class Impostor:
    """Listens in the launcher's place and says what it is told to, whatever is asked."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.say: Callable[[socket.socket], None] = lambda connection: None
        self.asked: list[bytes] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def answers(self, *lines: Any) -> LauncherClient:
        data = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)

        def say(connection: socket.socket) -> None:
            connection.sendall(data)

        self.say = say
        return LauncherClient(self.path)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.settimeout(5)
                    self.asked.append(connection.recv(2000))
                    self.say(connection)
                except OSError:
                    pass

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def listening(directory: Path) -> Iterator[Impostor]:
    impostor = Impostor(str(directory / "socket"))
    try:
        yield impostor
    finally:
        impostor.close()


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[Impostor]:
    with listening(tmp_path) as impostor:
        yield impostor


def test_the_request_is_one_line(impostor: Impostor) -> None:
    client = impostor.answers({"ok": True, "apps": [], "searched": ["/a"]})
    assert client.listing() == {"apps": [], "searched": ["/a"]}
    impostor.answers({"ok": True, "id": "x", "name": "X", "path": "/x", "exec": "x %f", "wm_class": "a\\b"})
    entry = client.find("Ein Name")
    assert (entry.id, entry.exec, entry.startup_wm_class) == ("x", "x %f", "a\\b")
    assert impostor.asked == [b"list\n", b"find Ein Name\n"]


@pytest.mark.parametrize("name", ["", "a\nlaunch b", "a\0b", "x" * 256, "../x", "\ud800"])
def test_what_is_no_name_is_never_sent(impostor: Impostor, name: str) -> None:
    client = impostor.answers({"ok": True})
    with pytest.raises(InvalidName):
        client.find(name)
    with pytest.raises(InvalidName):
        client.start(Entry(name, "/x", "x", {}, True, True))
    assert impostor.asked == []


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"kind": "unknown", "facts": {"near": [{"id": "a", "name": "A"}]}}, UnknownApplication),
        ({"kind": "ambiguous", "facts": {"ids": ["a", "b"]}}, AmbiguousApplication),
        ({"kind": "invalid", "facts": {}}, InvalidName),
        ({"kind": "unsupported", "facts": {}}, Unsupported),
        ({"kind": "no_display", "facts": {}}, NoDisplay),
        ({"kind": "failed", "facts": {}}, ActionFailed),
        ({"kind": "setup", "facts": {}}, SetupError),
        ({"kind": "something new", "facts": {}}, SetupError),
    ],
)
def test_its_errors_are_ours(impostor: Impostor, answer: dict[str, Any], error: type[Exception]) -> None:
    client = impostor.answers({"ok": False, "error": "what happened, what to do", **answer})
    with pytest.raises(error, match="what happened, what to do") as raised:
        client.find("x")
    assert type(raised.value) is error
    assert getattr(raised.value, "sent", "none") == "none"
    facts: dict[str, Any] = answer["facts"]
    assert raised.value.facts == facts  # type: ignore[attr-defined]


BAD = [
    b"",
    b"\n",
    b"{}\n",
    b"null\n",
    b"[]\n",
    b"not json\n",
    b"\xff\xfe\n",
    b"[" * 100000 + b"\n",
    b'{"ok": 1}\n',
    b'{"ok": true}\n',
    b'{"ok": true',
    b'{"ok": false}\n',
    b'{"ok": false, "kind": "unknown", "error": "x", "facts": {"near": 5}}\n',
    b'{"ok": false, "kind": "unknown", "error": "x", "facts": {"near": [1, 2, 3, 4]}}\n',
    b'{"ok": false, "kind": "ambiguous", "error": "x", "facts": {"ids": [1]}}\n',
    b'{"ok": false, "kind": 5, "error": "x", "facts": {}}\n',
    b'{"ok": false, "kind": "failed", "error": ["x"], "facts": {}}\n',
    b'{"ok": true, "apps": {}, "id": 5, "launches": {}, "ended": "2"}\n',
    b'{"ok": true, "apps": [5], "id": "x", "launches": [5], "ended": -1}\n',
    b'{"ok": true, "apps": [{"id": "x"}], "id": "x", "launches": [{"id": "x"}], "ended": true}\n',
    b'{"ok": true, "apps": [], "searched": [5], "id": "x", "name": 5, "launches": null, "ended": 1e9}\n',
]
ROW: dict[str, Any] = {"id": "a", "name": "a", "keeper": 5, "mark": MARK, "running": True, "pids": []}
BAD += [
    json.dumps({"ok": True, "launches": [{**ROW, **wrong}]}).encode() + b"\n"
    for wrong in ({"keeper": 1}, {"mark": "x"}, {"running": 1}, {"pids": [0]}, {"pids": [1 << 30]}, {"pids": [True]})
]


@pytest.mark.parametrize("answer", BAD, ids=range(len(BAD)))
def test_anything_else_is_one_sentence(impostor: Impostor, answer: bytes) -> None:
    client = impostor.answers(answer)
    before = open_fds()
    for ask in (client.listing, lambda: client.find("x"), client.launches, lambda: client.kill(MARK)):
        with pytest.raises(SetupError, match=f"^the launcher at {impostor.path} ") as raised:
            ask()
        assert str(raised.value).endswith("see its log, and start it again (deskhand launcher)")
        assert len(str(raised.value)) < 400
    with pytest.raises(ActionFailed, match=r"^One may have been started: the launcher at"):
        client.start(ENTRY)
    assert until(lambda: open_fds() <= before)


@pytest.mark.parametrize("field", sorted(set(FIRST) - {"note", "failed", "exit", "failure", "ok", "pid"}))
def test_a_launch_with_a_field_missing_or_wrong_is_no_answer(impostor: Impostor, field: str) -> None:
    for wrong in ({field: [FIRST[field]]}, {field: None}, {field: -1 if field != "over" else 0}):
        with pytest.raises(ActionFailed, match=f"gave an answer whose {field} is"):
            impostor.answers({**FIRST, **wrong}).start(ENTRY)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"pid": pid} for pid in (0, 1, 1 << 40, True)),
        *({"exit": ended} for ended in ([1], "x")),
        {"failure": [1, 2, -3]},
        {"note": 5},
        {"failed": []},
    ],
)
def test_numbers_that_are_no_processes(impostor: Impostor, wrong: dict[str, Any]) -> None:
    with pytest.raises(ActionFailed, match="gave an answer whose"):
        impostor.answers({**FIRST, **wrong}).start(ENTRY)


def test_an_answer_without_end_is_cut(impostor: Impostor) -> None:
    def say(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"a" * 65536)

    impostor.say = say
    with pytest.raises(SetupError, match="answered with more than 262144 bytes"):
        LauncherClient(impostor.path).launches()


def test_a_silent_one_is_given_up(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_ANSWER", 0.2)
    over = threading.Event()

    def say(_connection: socket.socket) -> None:
        over.wait(10)

    impostor.say = say
    try:
        with pytest.raises(SetupError, match=r"did not answer within 0\.2 s"):
            LauncherClient(impostor.path).listing()
    finally:
        over.set()


def test_one_that_trickles_is_given_up(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_ANSWER", 0.3)
    over = threading.Event()

    def say(connection: socket.socket) -> None:
        while not over.wait(0.05):
            connection.sendall(b" ")

    impostor.say = say
    try:
        with pytest.raises(SetupError, match=r"did not answer within 0\.3 s"):
            LauncherClient(impostor.path).listing()
    finally:
        over.set()


def test_what_is_said_is_made_fit_for_people(impostor: Impostor) -> None:
    client = impostor.answers({"ok": False, "kind": "setup", "error": "a\nb\x1b[31m\ud800" + "x" * 9000, "facts": {}})
    with pytest.raises(SetupError) as raised:
        client.listing()
    assert str(raised.value).startswith("a b [31m?xxx")
    assert len(str(raised.value)) <= 2000
    listed = impostor.answers(
        {"ok": True, "apps": [{"id": "a", "name": "\udc80" + "n" * 9000, "path": "/a"}], "searched": []}
    )
    (row,) = listed.listing()["apps"]
    assert row["name"].encode() == b"?" + b"n" * 4095


def ended(launching: Launching) -> bool:
    """Whether the news comes to its end."""

    def read() -> bool:
        launching.read()
        return launching.fileno() < 0

    return bool(until(read))


def test_a_launch_is_followed_line_by_line(impostor: Impostor) -> None:
    gate = threading.Event()

    def say(connection: socket.socket) -> None:
        connection.sendall(json.dumps(FIRST).encode() + b"\n")
        gate.wait(10)
        last = {**FIRST, "over": True, "exit": [4242, 3, 0], "failure": [4242, 3, 0], "last_words": "oh\x07 no"}
        connection.sendall(json.dumps(last).encode() + b"\n")

    impostor.say = say
    launching = LauncherClient(impostor.path).start(ENTRY)
    launching.read()
    assert (launching.pid, launching.over, launching.ended_badly) == (4242, False, False)
    assert launching.fileno() >= 0
    gate.set()
    assert ended(launching)
    assert (launching.over, str(launching.failure), launching.last_words()) == (True, "exit status 3", "oh  no")
    assert launching.ended_badly
    launching.close()


def test_nonsense_after_the_first_line_ends_the_news_and_changes_nothing(impostor: Impostor) -> None:
    for nonsense in (
        b"{}\n",
        b"\xff\n",
        json.dumps({**FIRST, "pid": "x", "over": True}).encode() + b"\n",
        b"a" * 300000,
    ):
        launching = impostor.answers(FIRST, nonsense).start(ENTRY)
        assert ended(launching)
        assert (launching.pid, launching.over, launching.error) == (4242, False, None)
        launching.close()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(MARK),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*FIRST, "apps", "id", "name"]), inner),
    max_leaves=12,
)
names = st.sampled_from([*FIRST, "apps", "searched", "id", "name", "path", "launches", "pids", "ended"])
answers = st.one_of(
    st.binary(max_size=200),
    st.dictionaries(names, json_values).map(
        lambda value: json.dumps({"ok": True, **value}).encode() + b"\n"
    ),
    json_values.map(lambda value: json.dumps(value).encode() + b"\n"),
    st.tuples(st.sampled_from(sorted(FIRST)), json_values).map(
        lambda pair: json.dumps({**FIRST, pair[0]: pair[1]}).encode() + b"\n"
    ),
)  # fmt: skip


def whatever_is_answered(impostor: Impostor, answer: bytes) -> None:
    client = impostor.answers(answer)
    for ask in (client.listing, lambda: client.find("x"), client.launches, lambda: client.kill(MARK)):
        with contextlib.suppress(DeskhandError, ApplicationError):
            ask()
    try:
        launching = client.start(ENTRY)
    except (DeskhandError, ApplicationError):
        return
    launching.read()
    assert launching.pid is None or launching.pid > 1
    assert not launching.owns([os.getpid()]) or launching.keeper in (os.getpid(), os.getppid())
    launching.close()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(answer=answers)
def test_any_answer_is_an_answer_or_a_sentence(impostor: Impostor, answer: bytes) -> None:
    whatever_is_answered(impostor, answer)


@pytest.mark.long
@settings(max_examples=20000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(answer=answers)
def test_any_answer_at_length(impostor: Impostor, answer: bytes) -> None:
    whatever_is_answered(impostor, answer)
