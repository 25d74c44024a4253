"""What every command has in common: usage errors, help, and how it ends when nobody reads or somebody interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from deskhand.cli.output import write_file
from deskhand.errors import SetupError
from deskhand.testing import XServer, xvfb
from tests.commands import PROGRAM, act, deskhand, environment, start
from tests.probes import grabbed, pressed
from tests.toolkits import toolkit_window

ON_A_DISPLAY = [
    ["act", "--json", "move", "1", "1"],
    ["act", "screenshot"],
    ["screenshot", "-o", "unwritten.png"],
    ["windows", "--json"],
    ["apps", "--json"],
    ["launch", "x", "--json"],
]


@pytest.mark.parametrize(
    "words",
    [
        [""],
        ["nosuch"],
        ["--nosuch"],
        ["act", "--nosuch"],
        ["act", "--timeout", "nan", "move", "1", "1"],
        ["act", "--timeout", "-1", "move", "1", "1"],
        ["act", "--timeout", "x", "move", "1", "1"],
        ["act", "--display"],
        ["act"],
        ["act", "scroll", "-3"],
        ["act", "type", "-1.5 x"],
        ["launch"],
        ["launch", "a", "b"],
        ["launch", "a", "--timeout", "inf"],
        ["screenshot"],
        ["screenshot", "-o", "x.png", "--region", "1,2,3"],
        ["screenshot", "-o", "x.png", "--max-edge", "0"],
        ["screenshot", "-o", "x.png", "--max-edge", "1e3"],
        ["windows", "x"],
        ["desktop", "nosuch"],
        ["desktop", "up", "--session", "kde"],
        ["desktop", "up", "--size", "0x0"],
        ["desktop", "up", "--size", "-1x5"],
        ["desktop", "up", "--size", "99999x99999"],
        ["desktop", "up", "--timeout", "nan"],
        ["desktop", "down"],
        ["run", "--max-actions", "0"],
        ["run", "--size", "big"],
        ["run", "--session", "kde"],
        ["run", "--model", "anthropic:x"],
        ["run", "another goal"],
    ],
)
def test_wrong_usage_is_one_line_and_status_2(tmp_path: Path, words: list[str]) -> None:
    answer = deskhand(None, *words, cwd=tmp_path)
    assert (answer.status, answer.output) == (2, b"")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["act", "--help"], ["desktop", "up", "-h"], ["--version"]])
def test_help_is_no_error(words: list[str]) -> None:
    answer = deskhand(None, *words)
    assert answer.status == 0
    assert answer.output.strip()


def test_a_command_alone_shows_what_there_is() -> None:
    answer = deskhand(None)
    assert answer.status == 2
    assert b"screenshot" in answer.output


@pytest.mark.parametrize("words", [*ON_A_DISPLAY, ["doctor", "--json"]])
def test_no_display_says_what_was_tried(tmp_path: Path, words: list[str]) -> None:
    """``apps`` needs none; ``doctor`` tells it as a finding."""
    answer = deskhand(None, *words, cwd=tmp_path)
    if words[0] == "apps":
        assert answer.status == 0
    elif words[0] == "doctor":
        found = {finding["what"]: finding for finding in answer.json}
        assert (answer.status, answer.error) == (1, "what is needed is missing: display")
        assert found["display"]["state"] == "missing"
        assert "set DISPLAY or pass --display" in found["display"]["text"]
    elif words[0] == "launch":
        assert answer.status in (2, 5)  # what there is to launch is known without one
    else:
        assert answer.status == 5
        assert "set DISPLAY or pass --display" in answer.error
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", ON_A_DISPLAY)
@pytest.mark.parametrize(
    "display", [":987", "nohost.invalid:1", "what", ":", ":-1", ":99999999999999999999", "x" * 500]
)
def test_a_display_that_is_none_is_status_5(tmp_path: Path, words: list[str], display: str) -> None:
    answer = deskhand(None, words[0], "--display", display, *words[1:], cwd=tmp_path)
    assert answer.status == 5, answer
    assert os.listdir(tmp_path) == []
    if "--json" in words and answer.output:
        told = answer.json
        assert (told["ok"], told["sent"], told["kind"]) == (False, "none", "no_display")


def test_a_wrong_cookie_is_status_5(tmp_path: Path) -> None:
    with xvfb(auth=True) as server:
        (tmp_path / "empty").touch()
        assert deskhand(server, "windows", "--json").status == 0
        answer = deskhand(server, "windows", "--xauthority", str(tmp_path / "empty"))
        assert answer.status == 5
        assert f"): {tmp_path / 'empty'} holds no cookie; set XAUTHORITY" in answer.error
        assert deskhand(environment(server, XAUTHORITY=str(tmp_path / "none")), "windows").status == 5


def test_a_grabbed_server_is_an_error_within_the_deadline(display: XServer) -> None:
    with grabbed(display):
        answer = deskhand(display, "act", "--json", "--timeout", "0.5", "move", "3", "3")
    assert answer.status == 5
    assert answer.json["sent"] == "none"
    assert answer.json["kind"] == "timeout"
    assert "grab" in answer.error
    assert act(display, {"action": "cursor_position"}).json["results"][0]["point"] == [640, 400]


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_traceback(display: XServer) -> None:
    for words in ("act screenshot --json", "apps --json", "screenshot -o /dev/stdout", "--help"):
        done = subprocess.run(
            ["sh", "-c", f'"{PROGRAM}" {words} | head -c 1'], env=environment(display), capture_output=True, timeout=60
        )
        assert len(done.stdout) == 1, words
        assert done.stderr == b"", words


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_files_are_no_traceback(display: XServer, closed: str) -> None:
    for words, wanted in (("act --json move 1 1", 0), ("act --json fly", 2), ("windows --json", 0)):
        done = subprocess.run(
            ["sh", "-c", f'"{PROGRAM}" {words} {closed}'], env=environment(display), capture_output=True, timeout=60
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (wanted, False), words


def test_a_batch_from_a_closed_standard_input_is_refused(display: XServer) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{PROGRAM}" act <&-'], env=environment(display), capture_output=True, timeout=60
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "actions",
    [
        [{"action": "hold_key", "keys": "ctrl+shift+k", "seconds": 50}],
        [{"action": "key_down", "keys": "alt"}, {"action": "wait_window", "title": "no such", "timeout": 50}],
    ],
)
def test_a_signal_leaves_nothing_pressed(
    openbox_display: XServer, tmp_path: Path, number: signal.Signals, actions: list[dict[str, object]]
) -> None:
    with toolkit_window(openbox_display, "tk", tmp_path / "log") as window:
        process = start(openbox_display, "act", "--json", "--session", "a", stdin={"actions": actions})
        assert window.until(lambda w: any("key" in line for line in w.lines))
        process.send_signal(number)
        output, error = process.communicate(timeout=30)
        assert process.returncode == 128 + number
        assert (output, error.decode()) == (b"", f"deskhand: stopped by {number.name}\n")
        assert pressed(openbox_display) == []
        assert act(openbox_display, {"action": "move", "x": 1, "y": 1}).status == 0


def test_signals_that_were_ignored_stay_so(display: XServer) -> None:
    """nohup, and what a shell starts in the background."""
    script = f'trap "" INT HUP; "{PROGRAM}" act wait 1 & sleep 0.7; kill -INT $!; kill -HUP $!; wait $!'
    done = subprocess.run(["sh", "-c", script], env=environment(display), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("quoted", ["a\nb", "a\r\x1b[2Jb", "\u2028", "\x00", "x" * 100_000])
def test_an_error_that_quotes_anything_is_one_line(display: XServer, quoted: str) -> None:
    answer = act(display, {"action": quoted})
    assert answer.status == 2
    assert answer.error.isprintable()
    assert len(answer.error) < 2100


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    (tmp_path / "link").symlink_to(path)
    write_file(tmp_path / "link", b"new")
    assert path.read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()
    for wrong in (tmp_path, tmp_path / "none" / "x.png", path / "x", tmp_path / ("n" * 300), Path("")):
        with pytest.raises(SetupError, match="can not be written"):
            write_file(wrong, b"x")
    assert sorted(os.listdir(tmp_path)) == ["a.png", "link"]
