"""State files and records of launches, written by several processes and read whatever stands in them."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deskhand.hand import state
from deskhand.hand.errors import NoDisplay, SetupError


@pytest.fixture
def directory(tmp_path: Path) -> str:
    for name in ("desktops", "launched"):
        (tmp_path / name).mkdir()
    return str(tmp_path)


@pytest.fixture
def server() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for an X server and carries the mark of the desktop ``one``."""
    process = subprocess.Popen(["sleep", "1000"], env={"PATH": os.environ["PATH"], state.MARK: "one"})
    yield process
    process.kill()
    process.wait()


def facts(process: subprocess.Popen[bytes], **changes: Any) -> dict[str, Any]:
    start_time = state.process_start_time(process.pid)
    return {
        "display": ":71",
        "id": "one",
        "state": "ready",
        "env": {"DISPLAY": ":71"},
        "processes": {"X server": [process.pid, start_time]},
        **changes,
    }


@pytest.mark.parametrize(
    ("display", "key"),
    [(":71", "71"), (":71.0", "71"), ("unix:71", "71"), (":071", "71"), ("host:1", "host_1"), ("[::1]:1", "__1_1")],
)
def test_display_key(display: str, key: str) -> None:
    assert state.display_key(display) == key


@pytest.mark.parametrize("display", ["", "71", ":", ":x", "../x", ":1/../2", "a/b:1", ":١"])
def test_what_is_no_display_is_refused(display: str) -> None:
    with pytest.raises(NoDisplay):
        state.display_key(display)


def test_find_desktop(directory: str, server: subprocess.Popen[bytes]) -> None:
    state.write_desktop(directory, facts(server))
    found = state.find_desktop(":71.0", [directory])
    assert found is not None
    assert found["env"] == {"DISPLAY": ":71"}
    assert state.find_desktop(":72", [directory]) is None
    server.kill()
    server.wait()
    assert state.find_desktop(":71", [directory]) is None
    assert len(state.read_desktops([directory])) == 1


def test_a_later_process_with_the_number_is_not_the_server(directory: str, server: subprocess.Popen[bytes]) -> None:
    start_time = state.process_start_time(server.pid)
    assert start_time is not None
    state.write_desktop(directory, facts(server, processes={"X server": [server.pid, start_time - 1]}))
    assert state.find_desktop(":71", [directory]) is None
    state.write_desktop(directory, facts(server, id="another"))
    assert state.find_desktop(":71", [directory]) is None, "the process carries the mark of another desktop"


@pytest.mark.parametrize("word", ["starting", "stopping", "dead"])
def test_a_desktop_that_is_not_ready_is_not_found(directory: str, server: subprocess.Popen[bytes], word: str) -> None:
    state.write_desktop(directory, facts(server, state=word))
    assert state.find_desktop(":71", [directory]) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"display": ":71"}', b"\xff\xfe", b'{"display": 71, "id": 1}', b"9" * 9999]
)
def test_a_broken_state_file_is_passed_over(directory: str, server: subprocess.Popen[bytes], content: bytes) -> None:
    Path(directory, "desktops", "71.json").write_bytes(content)
    state.write_desktop(directory, facts(server, display=":72"))
    assert state.find_desktop(":71", [directory]) is None
    assert [found["display"] for found in state.read_desktops([directory])] == [":72"]


def test_links_and_pipes_are_no_state_files(directory: str, server: subprocess.Popen[bytes]) -> None:
    path = state.write_desktop(directory, facts(server))
    os.symlink(path, os.path.join(directory, "desktops", "72.json"))
    os.mkfifo(os.path.join(directory, "desktops", "73.json"))
    os.mkdir(os.path.join(directory, "desktops", "74.json"))
    assert [found["display"] for found in state.read_desktops([directory])] == [":71"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
def test_a_strangers_state_file_is_not_believed(directory: str, server: subprocess.Popen[bytes]) -> None:
    os.chown(state.write_desktop(directory, facts(server)), 12345, 12345)
    assert state.find_desktop(":71", [directory]) is None


def test_a_directory_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "open"
    state.make_private_directory(str(path), 0o700)
    state.make_private_directory(str(path), 0o700)
    path.chmod(0o777)
    with pytest.raises(SetupError, match="is not a directory that only user"):
        state.make_private_directory(str(path), 0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(SetupError):
        state.make_private_directory(str(link), 0o700)


def test_process_start_time() -> None:
    assert state.is_alive(os.getpid(), state.process_start_time(os.getpid()))
    assert not state.is_alive(os.getpid(), 1)
    assert not state.is_alive(None, None)
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        child.stdout.read()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert state.process_start_time(child.pid) is None, "a zombie is no process that holds anything"
        child.wait()


def test_launches_are_remembered_and_forgotten(directory: str, server: subprocess.Popen[bytes]) -> None:
    start_time = state.process_start_time(server.pid)
    state.record_launched(":71", {"id": "mousepad", "pid": server.pid, "keep_open": True}, directory)
    state.record_launched("unix:71.0", {"id": "gone\nid", "pid": 2**22 + 1}, directory)
    first, second = state.launched(":71", [directory])
    assert (first["id"], first["alive"], first["start_time"], first["keep_open"]) == (
        "mousepad",
        True,
        start_time,
        True,
    )
    assert (second["id"], second["alive"]) == ("gone\nid", False)
    assert state.launched(":72", [directory]) == []
    state.forget_launched(":71", server.pid, start_time, directory)
    assert [record["id"] for record in state.launched(":71", [directory])] == ["gone\nid"]
    state.forget_launched(":79", 1, 1, directory)


def test_a_line_that_was_cut_off_harms_no_other(directory: str) -> None:
    state.record_launched(":71", {"id": "a", "pid": 1}, directory)
    path = Path(directory, "launched", "71.jsonl")
    path.write_bytes(path.read_bytes() + b'{"id": "half')
    state.record_launched(":71", {"id": "b", "pid": 1}, directory)
    assert [record["id"] for record in state.launched(":71", [directory])] == ["a", "b"]


def write_many(directory: str, name: str) -> None:
    for number in range(40):
        state.record_launched(":71", {"id": f"{name}{number}", "pid": os.getpid()}, directory)


def test_writers_at_once_lose_nothing(directory: str) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_many, args=(directory, name)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    records = state.launched(":71", [directory])
    assert {record["id"] for record in records} == {f"{name}{n}" for name in "abcd" for n in range(40)}


def test_dead_records_go_when_there_are_many(directory: str, server: subprocess.Popen[bytes]) -> None:
    path = Path(directory, "launched", "71.jsonl")
    path.write_text("".join(json.dumps({"id": "old", "pid": 1, "start_time": -1}) + "\n" for _ in range(1000)))
    state.record_launched(":71", {"id": "new", "pid": server.pid}, directory)
    assert [record["id"] for record in state.launched(":71", [directory])] == ["new"]


def test_a_lock_that_is_never_given_back_ends_in_an_error(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_LOCK_TIMEOUT", 0.1)
    path = Path(directory, "launched", "71.jsonl")
    path.touch()
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(SetupError, match="stays locked"):
            state.record_launched(":71", {"id": "a", "pid": 1}, directory)
        with pytest.raises(SetupError, match="stays locked"):
            state.launched(":71", [directory])
