# ruff: noqa: F811  (fixtures of another file)
"""Launching: what is told when no window comes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.launching import Desk, argument_script, bare, desk, own_state  # noqa: F401
from tests.x_windows import command
from tests.xservers import until

from deskhand.hand.errors import Unsupported
from deskhand.hand.quit import quit_application
from deskhand.hand.x11 import core


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


def test_what_every_gtk_program_says_are_no_last_words(desk: Desk) -> None:
    noise = "(x:1): dbind-WARNING **: 1:2:3: AT-SPI: Error retrieving accessibility bus address"
    script = argument_script(desk.directory, f"echo the reason; echo '{noise}'; exit 1\n")
    assert desk.fails("noisy", script).facts["last_words"] == "the reason"


def test_a_path_that_is_not_there_is_told(desk: Desk) -> None:
    answer = desk.launch("away", command(), "Path=/no/such/directory")
    assert answer["note"] == "its Path /no/such/directory is no directory, so it runs in /"


def test_what_was_there_before_did_not_appear(bare: Desk) -> None:
    """Without a window manager an application's hidden windows lie beside the others."""
    core.create_window(bare.conn)
    bare.conn.sync()
    failed = bare.fails("nothing", "true", timeout=0.3)
    assert failed.facts["candidates"] == []
    assert "appeared" not in str(failed)


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
