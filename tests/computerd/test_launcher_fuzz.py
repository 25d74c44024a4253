"""The launcher's protocol, fuzzed: every request is answered with one line or none, in time, and nothing starts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deskhand.computerd.launcher.peer import LONGEST_REQUEST, Refused
from deskhand.computerd.launcher.server import REQUESTS, parse
from deskhand.hand.applications import ApplicationError
from tests.computerd.launchers import RunningLauncher, everything, running_launcher

verbs = st.sampled_from([*REQUESTS, "LIST", "quit", "exec", "", "launch launch"])
names = st.one_of(
    st.text(max_size=300),
    st.text(alphabet="\U0001f58c\u0301e\u202e", min_size=250, max_size=280),
    st.sampled_from(["../x", "/bin/sh", "--help", "a;b", "$(reboot)", "%f", "x\0y", "x\ny", "x\r", "\ufeffx", " "]),
)
lines = st.one_of(
    st.binary(max_size=1300),
    st.tuples(
        verbs, st.sampled_from([" ", "", "\t", "  ", "\0"]), names, st.sampled_from(["\n", "", "\r\n", "\n\n"])
    ).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass")),
    st.integers(LONGEST_REQUEST - 8, LONGEST_REQUEST + 8).map(lambda size: b"find " + b"a" * size + b"\n"),
)
requests = st.tuples(lines, st.lists(st.integers(0, 1300), max_size=3))


@pytest.fixture(scope="module")
def launcher() -> Iterator[RunningLauncher]:
    """With no application at all: nothing that is asked for may start anything."""
    with running_launcher() as launcher:
        yield launcher


@given(lines)
def test_any_line_is_a_request_or_refused(line: bytes) -> None:
    try:
        verb, name = parse(line)
    except (Refused, ApplicationError):
        return
    assert line == f"{verb} {name}".encode() if name else line == verb.encode()
    assert len(line) < LONGEST_REQUEST
    assert len(name) <= 255
    assert "/" not in name


def whatever_is_asked(launcher: RunningLauncher, request: bytes, cuts: list[int]) -> None:
    pieces, last = [], 0
    for cut in sorted(cuts):
        pieces.append(request[last:cut])
        last = max(last, cut)
    pieces.append(request[last:])
    with launcher.connect() as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
            connection.shutdown(1)
        except OSError:
            pass  # it was answered before it was all sent
        answer = everything(connection)
    if not request:
        assert answer == b""
        return
    assert answer.endswith(b"\n")
    assert answer.count(b"\n") == 1
    assert answer.isascii()
    told = json.loads(answer)
    assert isinstance(told["ok"], bool)
    if not told["ok"]:
        assert told["error"]
        assert told["kind"] in ("refused", "invalid", "unknown")
    assert launcher.process is not None
    assert launcher.process.poll() is None


QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@settings(QUIET, max_examples=200)
@given(request=requests)
def test_any_request_is_answered(launcher: RunningLauncher, request: tuple[bytes, list[int]]) -> None:
    whatever_is_asked(launcher, *request)
    assert launcher.records() == []


@pytest.mark.long
def test_ten_minutes_of_requests(launcher: RunningLauncher) -> None:
    assert launcher.process is not None
    pid = launcher.process.pid
    end = time.monotonic() + 600

    @settings(QUIET, max_examples=500, database=None)
    @given(request=requests)
    def some(request: tuple[bytes, list[int]]) -> None:
        whatever_is_asked(launcher, *request)

    some()
    descriptors, memory = len(os.listdir(f"/proc/{pid}/fd")), resident(pid)
    while time.monotonic() < end:
        some()
    assert launcher.records() == []
    assert len(os.listdir(f"/proc/{pid}/fd")) <= descriptors + 2
    assert resident(pid) < memory + 16384
    assert "a fault in deskhand itself" not in launcher.log.read_text()
    assert "Traceback" not in launcher.log.read_text()


def resident(pid: int) -> int:
    """Memory in use, KiB."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
