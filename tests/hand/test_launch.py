"""Launching: the window that is seen, the failures that are told, and what stays behind. Real servers and processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.x_windows import command, environment, make_entry, x_window, zombies_of

from deskhand.hand import keeper, launched_process, state, window_actions, windows
from deskhand.hand.errors import ActionFailed, Unsupported
from deskhand.hand.launch import launch
from deskhand.hand.quit import quit_application
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer


class Desk:
    """One display, entries made as they are needed, and launches on it."""

    def __init__(self, server: XServer, conn: Connection, directory: Path, manager: str | None) -> None:
        self.server = server
        self.conn = conn
        self.directory = directory
        self.manager = manager

    def launch(self, id: str, exec_line: str | None, *lines: str, env: Any = None, **options: Any) -> dict[str, Any]:
        entry = make_entry(self.directory, id, exec_line, *lines)
        where = environment(self.server, self.manager, **(env or {}))
        return launch(self.conn, None, entry, display=self.server.display, environment=where, **options)

    def fails(self, id: str, exec_line: str, *lines: str, timeout: float = 10, **options: Any) -> ActionFailed:
        with pytest.raises(ActionFailed) as failed:
            self.launch(id, exec_line, *lines, timeout=timeout, **options)
        return failed.value

    def records(self) -> list[dict[str, Any]]:
        return state.launched(self.server.display)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "state"
    monkeypatch.setattr(state, "own_directory", lambda: str(folder))


@pytest.fixture
def desk(openbox_display: XServer, tmp_path: Path) -> Iterator[Desk]:
    with Connection.open(openbox_display.display) as conn:
        desk = Desk(openbox_display, conn, tmp_path, "Openbox")
        yield desk
        end_all(desk)


@pytest.fixture
def bare(display: XServer, tmp_path: Path) -> Iterator[Desk]:
    with Connection.open(display.display) as conn:
        desk = Desk(display, conn, tmp_path, None)
        yield desk
        end_all(desk)


def end_all(desk: Desk) -> None:
    for record in desk.records():
        for pid in launched_process.descendants(
            record["pid"] if record["alive"] else None, str(record.get("mark") or "")
        ):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def until(condition: Callable[[], Any], timeout: float = 10.0) -> bool:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)  # processes of other parents tell nobody when they end
    return True


def argument_script(folder: Path, body: str) -> str:
    path = folder / "script.sh"
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)
    return str(path)


def waiting_for(path: Path, *options: str) -> str:
    """The shell line of a process of somebody else's that opens its window when ``path`` is there."""
    return f"until [ -e {path} ]; do sleep 0.05; done; exec {command(*options)}"


# ---- a window


@pytest.mark.parametrize("where", ["desk", "bare"])
def test_a_window_is_seen_and_has_the_focus(request: pytest.FixtureRequest, where: str) -> None:
    desk: Desk = request.getfixturevalue(where)
    answer = desk.launch("one", command("--title", "The one"))
    assert answer["outcome"] == "window"
    assert answer["window"]["title"] == "The one"
    assert answer["window"]["app_id"] == "XWindow"
    assert answer["window"]["rect"][2:] == [300, 200]
    assert (answer["matched"], answer["focused"], answer["opener"]) == (True, True, "Exec line")
    assert windows.focused_window(desk.conn) == answer["window"]["id"]
    assert os.getsid(answer["pid"]) == answer["group"] == answer["pid"]


@pytest.mark.slow
def test_a_slow_window_is_waited_for(desk: Desk) -> None:
    answer = desk.launch("slow", command("--title", "late", "--delay", "3"))
    assert answer["window"]["title"] == "late"


def test_a_process_that_forks_and_leaves_is_followed(desk: Desk) -> None:
    script = argument_script(desk.directory, f"({command('--title', 'child', '--delay', '0.3')}) &\nexit 0\n")
    answer = desk.launch("forker", script)
    assert answer["window"]["title"] == "child"
    assert answer["matched"]
    assert launched_process.ancestors(answer["pid"])


def test_a_splash_does_not_count(desk: Desk) -> None:
    answer = desk.launch("office", command("--title", "Document", "--splash", "0.5"))
    assert answer["window"]["title"] == "Document"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["splash", "notification", "tooltip", "dock", "desktop"])
def test_windows_that_are_no_application_window(desk: Desk, kind: str) -> None:
    failed = desk.fails("kind", command("--title", "special", "--type", kind), timeout=1.0)
    assert f"opened no window within 1 s; it is still running (pid group {failed.facts['pid']})" in str(failed)
    assert f"'special' appeared but is a {kind}" in str(failed)
    assert failed.facts["running"]


def test_a_minimised_window_does_not_count(desk: Desk) -> None:
    failed = desk.fails("small", command("--title", "tiny", "--iconic"), timeout=1.0)
    assert "'tiny' appeared but is not shown" in str(failed)


def test_a_window_is_known_by_its_class_when_the_process_is_another(desk: Desk) -> None:
    # As with a terminal's server: the window's process is not of the launch.
    request = desk.directory / "request"
    server = subprocess.Popen(
        [
            "sh",
            "-c",
            waiting_for(request, "--title", "served", "--wm-class", "x,Served"),
        ],
        env=desk.server.env,
    )
    try:
        answer = desk.launch("served", f"touch {request}")
        assert (answer["outcome"], answer["matched"], answer["window"]["title"]) == ("window", True, "served")
        assert answer["group"] is None
    finally:
        server.kill()
        server.wait()


def test_a_window_of_another_is_reported_as_a_candidate_while_the_application_runs(desk: Desk) -> None:
    request = desk.directory / "request"
    other = subprocess.Popen(
        ["sh", "-c", waiting_for(request, "--title", "stranger")],
        env=desk.server.env,
    )
    try:
        failed = desk.fails("quiet", f'sh -c "touch {request}; sleep 60"', timeout=2.0)
        assert "'stranger' appeared but is not known to be the application's" in str(failed)
        assert failed.facts["candidates"][0]["title"] == "stranger"
    finally:
        other.kill()
        other.wait()


@pytest.mark.slow
def test_a_window_of_another_is_not_matched_when_the_application_has_gone(desk: Desk) -> None:
    request = desk.directory / "request"
    other = subprocess.Popen(
        ["sh", "-c", waiting_for(request, "--title", "unknown", "--delay", "0.5")],
        env=desk.server.env,
    )
    try:
        answer = desk.launch("gone", f"touch {request}")
        assert (answer["outcome"], answer["matched"], answer["window"]["title"]) == ("window", False, "unknown")
    finally:
        other.kill()
        other.wait()


def test_an_old_window_that_is_raised_counts_as_focus(desk: Desk) -> None:
    with (
        x_window(desk.conn, desk.server, "only", "--wm-class", "single,Single") as old,
        x_window(desk.conn, desk.server, "in front"),
    ):
        # A second instance that asks the window manager to raise the first one's window, and ends.
        raiser = desk.directory / "raise.py"
        raiser.write_text(
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from deskhand.hand import window_actions\n"
            "from deskhand.hand.x11 import Connection\n"
            "window_actions.activate(Connection.open(), int(sys.argv[2]))\n"
        )
        source = Path(launched_process.__file__).parents[2]
        answer = desk.launch("single", f'"{sys.executable}" "{raiser}" "{source}" {old}')
        assert (answer["outcome"], answer["window"]["id"]) == ("focus", old)
        assert (answer["matched"], answer["focused"]) == (True, True)


RENAME = "xprop -display {display} -id {window} -f _NET_WM_NAME 8u -set _NET_WM_NAME '{title}'"


@pytest.mark.slow
def test_an_application_that_takes_the_work_in_the_window_with_the_focus(desk: Desk) -> None:
    # An editor that runs already and opens a new tab: it is in front, so nothing is raised, and no window is new.
    with x_window(desk.conn, desk.server, "one file", "--wm-class", "single,Single") as old:
        script = argument_script(
            desk.directory, RENAME.format(display=desk.server.display, window=old, title="another file") + "\n"
        )
        answer = desk.launch("single", script)
        assert (answer["outcome"], answer["matched"], answer["focused"]) == ("focus", True, True)
        assert (answer["window"]["id"], answer["window"]["title"]) == (old, "another file")


def test_a_new_window_is_better_than_another_title_of_an_old_one(desk: Desk) -> None:
    with x_window(desk.conn, desk.server, "one page", "--wm-class", "single,Single") as old:
        renaming = RENAME.format(display=desk.server.display, window=old, title="another page")
        opening = command("--title", "new", "--wm-class", "single,Single")
        # It ends at once, and the window is another process's, as with a browser that runs already.
        script = argument_script(desk.directory, f"{renaming}\n( sleep 0.3; exec setsid {opening} ) &\n")
        answer = desk.launch("single", script)
        assert (answer["outcome"], answer["window"]["title"]) == ("window", "new")


@pytest.mark.slow
def test_another_title_of_another_application_is_no_launch(desk: Desk) -> None:
    with x_window(desk.conn, desk.server, "one page", "--wm-class", "other,Other") as old:
        script = argument_script(
            desk.directory, RENAME.format(display=desk.server.display, window=old, title="another page") + "\n"
        )
        desk.fails("single", script, timeout=1.0)


def test_the_focus_moving_to_another_application_is_no_launch(desk: Desk) -> None:
    with x_window(desk.conn, desk.server, "behind") as other, x_window(desk.conn, desk.server, "front"):
        raiser = desk.directory / "raise.py"
        raiser.write_text(
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from deskhand.hand import window_actions\n"
            "from deskhand.hand.x11 import Connection\n"
            "window_actions.activate(Connection.open(), int(sys.argv[2]))\n"
        )
        source = Path(launched_process.__file__).parents[2]
        failed = desk.fails("nobody", f'"{sys.executable}" "{raiser}" "{source}" {other}', timeout=1.0)
        assert "'behind' appeared but took the focus and is not known to be" in str(failed)


def test_a_window_that_the_window_manager_keeps_back_is_activated(desk: Desk) -> None:
    # Focus stealing prevention: the person has typed since the application was started, or so it says.
    with x_window(desk.conn, desk.server, "typed into"):
        answer = desk.launch("held", command("--title", "kept back", "--user-time", "0"))
        assert answer["focused"]
        assert windows.focused_window(desk.conn) == answer["window"]["id"]


@pytest.mark.slow
def test_a_window_that_wants_no_input_is_told_as_not_focused(desk: Desk) -> None:
    answer = desk.launch("clock", command("--title", "no keys", "--no-input"))
    assert answer["outcome"] == "window"
    assert answer["focused"] is False


# ---- no window


def test_an_early_death_is_told_with_status_and_last_words(desk: Desk) -> None:
    failed = desk.fails("die", 'sh -c "echo first; echo the reason >&2; exit 9"')
    assert str(failed) == (
        "die ended before it opened a window, with exit status 9; its last words: the reason;"
        " the rest of the batch was not run"
    )
    assert failed.facts["exit"] == "exit status 9"
    assert failed.facts["last_words"] == "the reason"
    assert not failed.facts["running"]
    assert desk.records() == []


def test_a_death_by_signal_and_a_late_death_of_a_child(desk: Desk) -> None:
    assert "with signal 11 (SIGSEGV)" in str(desk.fails("crash", 'sh -c "kill -SEGV \\$\\$"'))
    script = argument_script(desk.directory, "(sleep 0.2; echo child says >&2; exit 4) &\nexit 0\n")
    assert "with exit status 4; its last words: child says" in str(desk.fails("late", script))


def test_the_last_words_are_one_printable_line(desk: Desk) -> None:
    script = argument_script(desk.directory, "printf 'a\\033[31mred\\033[0m\\ttail%0500d\\n\\n' 1; exit 1\n")
    words = desk.fails("noisy", script).facts["last_words"]
    assert words.isprintable()
    assert len(words) <= 300


def test_a_program_that_can_not_be_run(desk: Desk) -> None:
    assert desk.fails("not there", "/nonexistent/program").sent == "none"
    script = desk.directory / "nothing.sh"
    script.write_text("#!/nonexistent/interpreter\n")
    script.chmod(0o755)
    assert "can not be started: " in str(desk.fails("broken", str(script)))


def test_nothing_within_the_timeout_names_what_still_runs(desk: Desk) -> None:
    failed = desk.fails("sleeper", "sleep 60", timeout=0.5)
    assert str(failed) == (
        f"sleeper opened no window within 0.5 s; it is still running (pid group {failed.facts['pid']});"
        " the rest of the batch was not run"
    )
    (record,) = desk.records()
    assert (record["id"], record["alive"]) == ("sleeper", True)
    assert quit_application(desk.conn, app="sleeper", force=True, display=desk.server.display)["ended"] == 1


def test_an_opener_that_ends_with_0_and_leaves_nothing_is_waited_for(desk: Desk) -> None:
    failed = desk.fails("nothing", "true", timeout=1.0)
    assert "nothing opened no window within 1 s; it has ended with exit status 0" in str(failed)


def test_a_failing_opener_fails_at_once_and_is_named(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    opener = folder / "exo-open"
    opener.write_text("#!/bin/sh\necho cannot open >&2\nexit 3\n")
    opener.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    env = {"XDG_CURRENT_DESKTOP": "XFCE", "PATH": path}
    failed = desk.fails("one", "true", env=env)
    assert "with exit status 3; its last words: cannot open" in str(failed)
    assert failed.facts["opener"] == "exo-open"
    # One that starts the program and ends with 0 hides its death from everybody but us.
    opener.write_text('#!/bin/sh\n(sh -c "echo dead >&2; exit 9" &)\nsleep 0.3\nexit 0\n')
    assert "with exit status 9; its last words: dead" in str(desk.fails("two", "true", env=env))


def test_the_openers_own_message_is_a_failure(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    opener = folder / "exo-open"
    opener.write_text(f"#!/bin/sh\nexec {command('--title', 'Failed to open', '--type', 'dialog')}\n")
    opener.chmod(0o755)
    env = {"XDG_CURRENT_DESKTOP": "XFCE", "PATH": f"{folder}:{os.environ['PATH']}"}
    failed = desk.fails("one", "true", env=env)
    assert "one was not opened: exo-open shows 'Failed to open' in window" in str(failed)


def test_a_terminal_entry_runs_in_a_terminal(desk: Desk) -> None:
    if not os.path.exists("/usr/bin/xterm"):
        pytest.skip("no xterm here")
    tty = desk.directory / "tty"
    folder = desk.directory / "bin"
    folder.mkdir()
    for program in ("xterm", "sh", "test", "touch", "sleep"):
        (folder / program).symlink_to(f"/usr/bin/{program}")
    answer = desk.launch(
        "interm", f'sh -c "test -t 0 && touch {tty}; sleep 60"', "Terminal=true", env={"PATH": str(folder)}
    )
    assert answer["opener"] == "Exec line in xterm"
    assert until(tty.exists)
    (folder / "xterm").unlink()
    with pytest.raises(Unsupported, match="none is installed"):
        desk.launch("interm", "sh", "Terminal=true", env={"PATH": str(folder)})


def test_an_activatable_entry_without_a_service_is_run_and_says_so(desk: Desk) -> None:
    answer = desk.launch("org.example.App", command("--title", "ran"), "DBusActivatable=true")
    assert (answer["opener"], answer["window"]["title"]) == ("Exec line", "ran")
    assert answer["note"].endswith("and its Exec line was run")


def test_an_activation_that_fails_falls_back_on_the_exec_line(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    gdbus = folder / "gdbus"
    gdbus.write_text(
        '#!/bin/sh\ncase "$*" in *ListActivatableNames*) echo "([\'org.example.App\'],)";; *) exit 1;; esac\n'
    )
    gdbus.chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
    answer = desk.launch("org.example.App", command("--title", "fell back"), "DBusActivatable=true", env=env)
    assert answer["window"]["title"] == "fell back"
    assert answer["note"] == "activating it on the session bus failed, so its Exec line was run"


# ---- what the application is given


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


# ---- what stays behind


@pytest.mark.slow
def test_launches_leave_nothing_behind(desk: Desk) -> None:
    desk.launch("first", command("--title", "first"))
    quit_application(desk.conn, app="first", display=desk.server.display)
    assert until(lambda: not zombies_of(os.getpid()))
    before = counts(desk)
    for number in range(50):
        answer = desk.launch("many", command("--title", f"number {number}"))
        assert answer["matched"]
        assert quit_application(desk.conn, app="many", display=desk.server.display)["outcome"] == "closed"
    assert until(lambda: counts(desk) == before), (counts(desk), before)
    assert desk.records() == []


def counts(desk: Desk) -> tuple[int, ...]:
    import threading

    marked = [pid for pid in launched_process.parents() if launched_process.launch_of(pid)]
    mine = launched_process.parents()
    children = [pid for pid, parent in mine.items() if parent == os.getpid()]
    x_clients = len(windows.list_windows(desk.conn))
    return (
        len(os.listdir("/proc/self/fd")), threading.active_count(), len(children), len(zombies_of(os.getpid())),
        len(marked), x_clients,
    )  # fmt: skip


def test_a_launch_outlives_the_process_that_asked_for_it(desk: Desk) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from pathlib import Path\n"
        "from deskhand.hand import state\n"
        "from deskhand.hand.launch import launch\n"
        "from deskhand.hand.applications import read_entry\n"
        "from deskhand.hand.x11 import Connection\n"
        "state.own_directory = lambda: sys.argv[4]\n"
        "conn = Connection.open()\n"
        "print(launch(conn, None, read_entry(sys.argv[3], 'lives'), display=sys.argv[5])['pid'])\n"
    )
    make_entry(desk.directory, "lives", command("--title", "lives on"))
    source = str(Path(launched_process.__file__).parents[2])
    tests = str(Path(__file__).parents[2])
    arguments = [source, tests, str(desk.directory / "lives.desktop"), state.own_directory(), desk.server.display]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=desk.server.env, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pid = int(done.stdout)
    assert os.path.exists(f"/proc/{pid}")
    (record,) = desk.records()
    assert record["alive"]
    assert record["pid"] in list(launched_process.ancestors(pid))
    # Quit works from another process than the one that launched.
    assert quit_application(desk.conn, app="lives", force=True, display=desk.server.display)["outcome"] == "closed"
    assert until(lambda: state.process_start_time(record["pid"]) is None)


def test_the_host_does_not_become_a_subreaper(desk: Desk) -> None:
    desk.launch("one", command("--title", "one"))
    script = "(sleep 0.2) & echo $!"
    child = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    pid = int(child.stdout)
    assert os.getpid() not in list(launched_process.ancestors(pid))


@pytest.mark.parametrize("manager_gone", [False, True])
def test_a_display_that_dies_during_a_launch(display: XServer, tmp_path: Path, manager_gone: bool) -> None:
    from deskhand.hand.errors import DisplayLost

    with Connection.open(display.display) as conn:
        desk = Desk(display, conn, tmp_path, None)
        killer = f'sh -c "sleep 0.3; kill {display.pid}; sleep 60"'
        with pytest.raises(DisplayLost):
            desk.launch("killer", killer)
        end_all(desk)


def test_timeout_is_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from deskhand.hand import launch as module

    monkeypatch.setattr(module, "LONGEST_TIMEOUT", 0.3)
    assert "within 0.3 s" in str(desk.fails("sleeper", "sleep 60", timeout=1000))


def test_two_launches_of_one_program_at_once_keep_their_windows_apart(desk: Desk) -> None:
    # The second's window is there first; it has the same class.
    slow = make_entry(desk.directory, "slow", command("--title", "slow", "--wm-class", "twin,Twin", "--delay", "1"))
    quick = make_entry(desk.directory, "quick", command("--title", "quick", "--wm-class", "twin,Twin"), name="twin")
    where = environment(desk.server, desk.manager)
    code = (
        "import sys; sys.path[:0] = sys.argv[1:2]\n"
        "from deskhand.hand import state\n"
        "from deskhand.hand.launch import launch\n"
        "from deskhand.hand.applications import read_entry\n"
        "from deskhand.hand.x11 import Connection\n"
        "state.own_directory = lambda: sys.argv[3]\n"
        "entry = read_entry(sys.argv[2], 'quick')\n"
        "print(launch(Connection.open(), None, entry, display=sys.argv[4])['window']['title'])\n"
    )
    source = str(Path(launched_process.__file__).parents[2])
    arguments = [source, quick.path, state.own_directory(), desk.server.display]
    other = subprocess.Popen([sys.executable, "-c", code, *arguments], env=where.env, stdout=subprocess.PIPE, text=True)
    twin = make_entry(desk.directory, "twin", slow.exec)
    answer = launch(desk.conn, None, twin, display=desk.server.display, environment=where)
    assert answer["window"]["title"] == "slow"
    assert other.communicate(timeout=30)[0].strip() == "quick"


def test_two_entries_of_one_program_are_told_apart(desk: Desk) -> None:
    first = desk.launch("one", command("--title", "first", "--wm-class", "same,Same"))
    second = desk.launch("two", command("--title", "second", "--wm-class", "same,Same"))
    assert first["window"]["id"] != second["window"]["id"]
    quit_application(desk.conn, app="one", display=desk.server.display)
    assert [facts["title"] for facts in windows.list_windows(desk.conn)] == ["second"]
    assert window_actions.activate(desk.conn, second["window"]["id"])["focused"]
