"""The one-file form: the same bytes from the same sources, and the same answers wherever it runs."""

from __future__ import annotations

import base64
import glob
import hashlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.probes import RawWindow, grabbed, keycode, pressed

import deskhand.hand
from deskhand.testing import XServer, xvfb

HAND = Path(deskhand.hand.__file__).parent
HERE = {"actions": [{"action": "cursor_position"}]}


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> str:
    return deskhand.hand.build(str(tmp_path_factory.mktemp("built") / "deskhand-hand.pyz"))


def pythons() -> list[str]:
    """This Python, the system's, and one of 3.9, where there are such."""
    project = Path(__file__).parents[2]
    wanted = [
        sys.executable,
        "/usr/bin/python3",
        str(project / ".venv39" / "bin" / "python"),
        *glob.glob(os.path.expanduser("~/.pyenv/versions/3.9*/bin/python3.9")),
    ]
    return [path for path in dict.fromkeys(wanted) if os.access(path, os.X_OK)]


def run(
    pyz: str, stdin: bytes | dict[str, Any] = b"", *arguments: str, python: str = sys.executable, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    data = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
    options.setdefault("env", {})
    done = subprocess.run([python, pyz, *arguments], input=data, capture_output=True, timeout=60, **options)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


class TestBuilding:
    def built_by(self, python: str, target: Path, **options: Any) -> str:
        code = (
            f"import sys; sys.path.insert(0, {str(HAND.parents[1])!r}); sys.dont_write_bytecode = True\n"
            f"import deskhand.hand; print(deskhand.hand.build({str(target)!r}))"
        )
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60, check=True, **options)
        assert done.stdout.strip() == str(target)
        return hashlib.sha256(target.read_bytes()).hexdigest()

    def test_the_same_bytes_everywhere(self, tmp_path: Path) -> None:
        first = self.built_by(sys.executable, tmp_path / "first.pyz")
        for number, python in enumerate(pythons()):
            for seed, mask, directory in (("0", 0o077, "/"), ("1234", 0o000, str(tmp_path))):
                env = {"PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo", "LC_ALL": "C"}
                target = tmp_path / f"{number}.{seed}.pyz"
                # Python 3.9 can set the umask only in the child itself.
                before = os.umask(mask)
                try:
                    assert self.built_by(python, target, env=env, cwd=directory) == first
                finally:
                    os.umask(before)
                assert target.stat().st_mode & 0o777 == 0o755

    def test_the_dates_and_modes_of_the_sources_do_not_matter(self, tmp_path: Path) -> None:
        copy = tmp_path / "src" / "deskhand"
        shutil.copytree(HAND, copy / "hand", ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "__init__.py").write_text("")
        for number, path in enumerate(sorted(copy.rglob("*.py"))):
            os.utime(path, (1e9 + number, 1e9 + number))
            path.chmod(0o600)
        (copy / "hand" / "left.pyc").write_bytes(b"x")
        (copy / "hand" / "__pycache__").mkdir()
        (copy / "hand" / "__pycache__" / "a.py").write_text("")
        code = f"import sys; sys.path.insert(0, {str(copy.parent)!r}); import deskhand.hand as h; h.build('x.pyz')"
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
        ours = deskhand.hand.build(str(tmp_path / "ours.pyz"))
        assert (tmp_path / "x.pyz").read_bytes() == Path(ours).read_bytes()

    def test_what_is_in_it(self, pyz: str) -> None:
        with zipfile.ZipFile(pyz) as archive:
            names = archive.namelist()
            assert archive.testzip() is None
            assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert names[0] == "__main__.py"
        assert len(names) == len(set(names)) > 30
        assert "deskhand_hand/x11/connection.py" in names
        assert not [name for name in names if name.startswith("/") or ".." in name or "pycache" in name]

    def test_an_old_one_is_replaced_whole(self, tmp_path: Path) -> None:
        target = tmp_path / "x.pyz"
        target.write_bytes(b"old" * 10_000_000)
        deskhand.hand.build(str(target))
        assert target.stat().st_size < 5_000_000
        assert os.listdir(tmp_path) == ["x.pyz"]

    def test_nothing_is_left_of_one_that_could_not_be_built(self, tmp_path: Path) -> None:
        (tmp_path / "x.pyz").mkdir()
        with pytest.raises(OSError, match=r"x\.pyz"):
            deskhand.hand.build(str(tmp_path / "x.pyz"))
        assert os.listdir(tmp_path) == ["x.pyz"]


class TestRunning:
    @pytest.mark.parametrize("python", pythons())
    def test_with_nothing_around_it(self, display: XServer, pyz: str, tmp_path: Path, python: str) -> None:
        """An empty directory that may not be written, an empty environment, no options but the display."""
        (tmp_path / "empty").mkdir()
        (tmp_path / "read only").mkdir()
        copy = shutil.copy(pyz, tmp_path / "read only" / "hand.pyz")
        (tmp_path / "read only").chmod(0o555)
        done = run(
            str(copy), {**HERE, "picture": True}, "--display", display.display, python=python, cwd=tmp_path / "empty"
        )
        (tmp_path / "read only").chmod(0o755)
        assert (done.returncode, done.stderr) == (0, b"")
        body = json.loads(done.stdout)
        assert body["ok"]
        assert body["results"][0]["status"] == "ok"
        assert base64.b64decode(body["picture"]["base64"]).startswith(b"\x89PNG")
        assert os.listdir(tmp_path / "empty") == []

    def test_it_runs_by_itself(self, display: XServer, pyz: str) -> None:
        env = {"DISPLAY": display.display, "PATH": os.environ["PATH"]}
        done = subprocess.run([pyz], input=json.dumps(HERE).encode(), env=env, capture_output=True, timeout=60)
        assert done.returncode == 0
        assert json.loads(done.stdout)["ok"]

    def test_the_pictures_bytes_after_the_answer(self, display: XServer, pyz: str) -> None:
        done = run(pyz, {"request": "screenshot"}, "--raw", f"--display={display.display}")
        line, content = done.stdout.split(b"\n", 1)
        picture = json.loads(line)["picture"]
        assert "base64" not in picture
        assert picture["bytes"] == len(content)
        assert content.startswith(b"\x89PNG")
        without = run(pyz, HERE, "--raw", "--display", display.display).stdout
        assert without.endswith(b"}\n")
        assert without.count(b"\n") == 1

    def test_it_acts(self, display: XServer, pyz: str) -> None:
        with RawWindow(display) as window:
            actions = [{"action": "click", "x": 5, "y": 6}, {"action": "key", "keys": "ctrl+a"}]
            done = run(pyz, {"actions": actions}, env={"DISPLAY": display.display})
            assert done.returncode == 0, done.stdout
            assert [event.at for event in window.all("press")] == [(5, 6)]
            assert len(window.all("key")) == 2
        assert pressed(display) == []

    @pytest.mark.parametrize(
        ("stdin", "status", "sentence"),
        [
            (b"", 2, "the request is not JSON, but empty"),
            (b"{", 2, "the request is not JSON"),
            (b"\xff\x00", 2, "the request is not JSON"),
            (b"[" * 100_000, 2, "JSON"),
            (b" " * (9 << 20), 2, "longer than 8 MiB: send it in parts"),
            (b'{"a": 1, "a": 2}', 2, "names the field 'a' twice"),
            (b"[]", 2, "a batch is an object"),
            (b'{"actions": []}', 2, "1 to 100 actions, not 0"),
            (json.dumps({"actions": [{"action": "wait", "seconds": 0}] * 10_000}).encode(), 2, "not 10000"),
            (b'{"actions": [{"action": "wait", "seconds": NaN}]}', 2, "seconds must be from 0 to 60"),
            (b'{"actions": [{"action": "move", "x": 9999, "y": 5}]}', 2, "outside the 1280x800 screen"),
            (b'{"actions": [{"action": "launch", "app": "../x"}]}', 2, "../x"),
            (b'{"actions": [{"action": "launch", "app": "--help"}]}', 2, "--help"),
            (b'{"actions": [{"action": "wait_window", "title": "none", "timeout": 0}]}', 3, "none"),
        ],
        ids=range(14),
    )
    def test_the_exit_status_and_one_line(
        self, display: XServer, pyz: str, stdin: bytes, status: int, sentence: str
    ) -> None:
        done = run(pyz, stdin, "--display", display.display)
        body = json.loads(done.stdout)
        assert (done.returncode, done.stderr, body["ok"], body["sent"]) == (status, b"", False, "none")
        told = body.get("error") or body["results"][0]["error"]
        assert sentence in told
        assert "\n" not in told

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (["--dance"], "unknown option '--dance': see --help"),
            (["extra"], "unknown option 'extra'"),
            (["--display"], "--display needs a value"),
            (["--raw=1"], "unknown option '--raw'"),
            (["--timeout", "soon"], "--timeout must be a number of seconds"),
            (["--timeout=nan"], "--timeout must be a number of seconds"),
            (["--timeout=0"], "--timeout must be a number of seconds"),
            (["-x"], "unknown option '-x'"),
        ],
    )
    def test_unknown_options(self, pyz: str, options: list[str], sentence: str) -> None:
        done = run(pyz, HERE, *options)
        assert (done.returncode, done.stdout) == (2, b"")
        assert sentence in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1

    def test_help(self, pyz: str) -> None:
        for option in ("--help", "-h"):
            done = run(pyz, b"", option)
            assert done.returncode == 0
            for name in ("--display", "--session", "--timeout", "--raw", "--resident", "--ask"):
                assert name.encode() in done.stdout

    def test_no_display(self, pyz: str) -> None:
        for arguments, sentence in (((), "no display is named"), (("--display=:4711",), "no X server listens")):
            done = run(pyz, HERE, *arguments)
            body = json.loads(done.stdout)
            assert (done.returncode, done.stderr, body["kind"], body["sent"]) == (5, b"", "no_display", "none")
            assert sentence in body["error"]

    def test_bad_input_is_refused_before_the_display_is_looked_for(self, pyz: str) -> None:
        assert run(pyz, {"actions": []}, "--display=:4711").returncode == 2

    def test_a_grabbed_server(self, display: XServer, pyz: str) -> None:
        with grabbed(display):
            done = run(pyz, HERE, "--display", display.display, "--timeout", "0.5")
        body = json.loads(done.stdout)
        assert (done.returncode, body["kind"], body["sent"]) == (5, "timeout", "none")

    def test_no_standard_input_at_all(self, display: XServer, pyz: str) -> None:
        command = ["sh", "-c", 'exec "$0" "$@" <&-', sys.executable, pyz, "--display", display.display]
        done = subprocess.run(command, capture_output=True, timeout=60)
        assert done.returncode == 2
        assert b"not JSON" in done.stdout
        assert b"Traceback" not in done.stderr

    @pytest.mark.parametrize("where", [">&-", "> /dev/full"])
    def test_nobody_can_read_the_answer(self, display: XServer, pyz: str, where: str) -> None:
        command = ["sh", "-c", f'exec "$0" "$@" {where}', sys.executable, pyz, "--display", display.display]
        done = subprocess.run(command, input=json.dumps(HERE).encode(), stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 1
        assert b"Traceback" not in done.stderr
        assert b"Exception" not in done.stderr

    def test_the_reader_goes_away(self, display: XServer, pyz: str) -> None:
        command = [sys.executable, pyz, "--display", display.display]
        reader, writer = os.pipe()
        os.close(reader)
        request = json.dumps({"request": "screenshot"}).encode()
        done = subprocess.run(command, input=request, stdout=writer, stderr=subprocess.PIPE, timeout=60)
        os.close(writer)
        assert done.returncode == 1
        assert done.stderr.count(b"\n") == 1
        assert b"the answer could not be written" in done.stderr

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_ended_in_the_middle_it_releases_what_it_held(self, display: XServer, pyz: str, number: int) -> None:
        actions = [{"action": "key_down", "keys": "shift"}, {"action": "wait", "seconds": 60}]
        with RawWindow(display) as window:
            command = [sys.executable, pyz, "--session", "s", "--display", display.display]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as process:
                assert process.stdin is not None
                process.stdin.write(json.dumps({"actions": actions}).encode())
                process.stdin.close()
                process.stdin = None
                assert window.conn.wait(lambda: window.received, 20)
                process.send_signal(number)
                out, err = process.communicate(timeout=20)
            assert process.returncode == 130
            body = json.loads(out)
            assert (body["ok"], body["sent"], body["kind"]) == (False, "unknown", "interrupted")
            assert [result["status"] for result in body["results"]] in (["ok", "failed"], ["failed", "skipped"])
            assert b"interrupted" in err
            assert err.count(b"\n") == 1
            assert pressed(display) == []

    def test_a_terminal_instead_of_a_pipe(self, display: XServer, pyz: str) -> None:
        parent, child = pty.openpty()
        with subprocess.Popen(
            [sys.executable, pyz, "--display", display.display], stdin=child, stdout=subprocess.PIPE
        ) as process:
            os.close(child)
            os.write(parent, json.dumps(HERE).encode() + b"\n\x04")
            out, _ = process.communicate(timeout=60)
        os.close(parent)
        assert process.returncode == 0
        assert json.loads(out)["ok"]


class TestSessions:
    def test_a_named_one_keeps_its_holds_from_call_to_call(self, display: XServer, pyz: str) -> None:
        shift = f"key {keycode(display, 0xFFE1)}"
        session = ("--session", "s", "--display", display.display)
        with RawWindow(display):
            assert run(pyz, {"actions": [{"action": "key_down", "keys": "shift"}]}, *session).returncode == 0
            assert pressed(display) == [shift]
            assert run(pyz, HERE, "--session", "other", "--display", display.display).returncode == 0
            assert run(pyz, HERE, *session).returncode == 0
            assert pressed(display) == [shift]
            assert run(pyz, {"actions": [{"action": "key_up", "keys": "shift"}]}, *session).returncode == 0
            assert pressed(display) == []

    def test_one_without_a_name_does_not(self, display: XServer, pyz: str) -> None:
        with RawWindow(display) as window:
            request = {"actions": [{"action": "key_down", "keys": "shift"}]}
            assert run(pyz, request, "--display", display.display).returncode == 0
            assert [event.kind for event in window.all("key", "up")] == ["key", "up"]
            assert pressed(display) == []

    def test_the_clipboard_outlives_the_call(self, display: XServer, pyz: str) -> None:
        request = {"actions": [{"action": "clipboard_set", "text": "Ähre"}]}
        assert run(pyz, request, "--display", display.display).returncode == 0
        done = run(pyz, {"actions": [{"action": "clipboard_get"}]}, "--display", display.display)
        assert json.loads(done.stdout)["results"][0]["text"] == "Ähre"


def test_another_user_is_told_that_the_cookie_is_not_for_it(pyz: str) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user")
    with xvfb(auth=True) as server:
        assert server.xauthority is not None
        with open(pyz, "rb") as file:
            # Through standard input, as that user can not read our temporary directory.
            source = base64.b64encode(file.read()).decode()
        code = (
            "import base64, os, runpy, sys, tempfile\n"
            "path = os.path.join(tempfile.mkdtemp(), 'hand.pyz')\n"
            "open(path, 'wb').write(base64.b64decode(sys.stdin.buffer.readline()))\n"
            f"sys.argv = [path, '--display', {server.display!r}, '--xauthority', {server.xauthority!r}]\n"
            "runpy.run_path(path, run_name='__main__')\n"
        )
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", code]
        stdin = source.encode() + b"\n" + json.dumps(HERE).encode()
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, env={"TMPDIR": "/tmp"}, cwd="/")
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    body = json.loads(done.stdout)
    assert (done.returncode, body["kind"]) == (5, "no_display")
    assert server.xauthority in body["error"]
