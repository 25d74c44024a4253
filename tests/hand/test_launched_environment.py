# ruff: noqa: F811  (fixtures of another file)
"""Launching: what the application is given, and what it is not."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.launching import Desk, argument_script, desk, own_state  # noqa: F401
from tests.x_windows import command, environment
from tests.xservers import until

from deskhand.hand import keeper, launched_process


def test_the_application_gets_nothing_of_ours(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret")
    report = desk.directory / "report"
    script = argument_script(
        desk.directory,
        f"{{ ls -l /proc/self/fd; grep -E '^Sig(Ign|Blk)' /proc/self/status; umask; pwd; env; }} > {report}.new\n"
        f"mv {report}.new {report}\nexit 0\n",
    )
    readable, writable = os.pipe()
    os.set_inheritable(writable, True)
    previous = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        desk.fails("spy", script, "Path=/var/tmp", timeout=0.5)
    finally:
        signal.signal(signal.SIGUSR1, previous)
        os.close(readable)
        os.close(writable)
    assert until(report.exists)
    text = report.read_text()
    descriptors = [line.split(" -> ")[1] for line in text.splitlines() if " -> " in line]
    assert descriptors[0] == "/dev/null"
    assert not any("pipe" in one or "socket" in one for one in descriptors[:3])
    assert len(descriptors) == 4  # the fourth is the listing's own folder
    assert "SigIgn:\t0000000000000000" in text
    assert "SigBlk:\t0000000000000000" in text
    assert "\n0022\n" in text
    assert "\n/var/tmp\n" in text
    assert f"DISPLAY={desk.server.display}" in text
    assert "DESKTOP_STARTUP_ID=deskhand-" in text


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_bytes_of_any_encoding_arrive_as_they_are(desk: Desk, locale: str) -> None:
    report = desk.directory / "report"
    script = argument_script(desk.directory, f'printf "%s|%s" "$1" "$VALUE" > {report}.new; mv {report}.new {report}\n')
    odd = os.fsdecode(b"caf\xc3\xa9 \xff")
    env = {**environment(desk.server, None).env, "VALUE": odd, "LC_ALL": locale}
    process = launched_process.start([script, odd], env, "/", None, "a-mark")
    try:
        assert until(report.exists)
        assert report.read_bytes() == b"caf\xc3\xa9 \xff|caf\xc3\xa9 \xff"
    finally:
        process.stop_listening()


def test_nothing_of_the_order_stands_in_a_command_line(desk: Desk) -> None:
    answer = desk.launch("seen", command("--title", "x"), env={"SOME_VALUE": "not-in-argv"})
    keepers = [record["pid"] for record in desk.records()]
    for pid in [answer["pid"], *keepers]:
        assert b"not-in-argv" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert Path(f"/proc/{keepers[0]}/environ").read_bytes() == b""


def test_the_log_is_bounded(desk: Desk) -> None:
    script = argument_script(
        desk.directory, "yes 'a line of output' | head -c 20000000\nsleep 1\necho; echo the end\nexit 7\n"
    )
    entry_env = environment(desk.server, None).env
    process = launched_process.start([script], entry_env, "/", None, "a-mark")
    try:
        assert until(lambda: process.read() or process.empty, 30)  # type: ignore[func-returns-value]
        assert os.fstat(process._log).st_size <= 2 * keeper.LOG_LIMIT
        assert process.last_words() == "the end"
        assert str(process.failure) == "exit status 7"
    finally:
        process.stop_listening()
