"""Finding one entry by id or name, what is refused and how, and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.hand import applications
from deskhand.hand.applications import AmbiguousApplication, ApplicationError, InvalidName, UnknownApplication


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """id, name and an extra line of each entry; those of one name differ in case or composition."""
    folder = tmp_path / "share/applications/kde"
    folder.mkdir(parents=True)
    entries = (
        ("firefox-esr", "Firefox ESR", ""),
        ("org.mozilla.firefox", "Firefox", ""),
        ("firefox", "Firefox", ""),
        ("kde/konsole", "Konsole", ""),
        ("Editor", "Writer", ""),
        ("editor", "Scribe", ""),
        ("two", "ÄRGER STRASSE", ""),
        ("three", unicodedata.normalize("NFD", "Café"), ""),
        ("four", "a\\nb", ""),
        ("name", "Editor", ""),
        ("menu-hidden", "Panel", "NoDisplay=true"),
        ("elsewhere", "Control Centre", "OnlyShowIn=GNOME;"),
        ("shadow", "Konsole", "NoDisplay=true"),
        ("deleted", "Deleted", "Hidden=true"),
        ("absent", "Absent", "TryExec=no-such-program-zz"),
        ("x.desktop", "Twice", ""),
        ("--json", "--help", ""),
        ("e", "Notepad++ (root) $HOME `x` %U; |*? 'q' \"d\" #1", ""),
        ("writer", "Hidden Writer", "NoDisplay=true"),
    )
    for id, name, line in entries:
        (folder.parent / f"{id}.desktop").write_text(
            f"[Desktop Entry]\nType=Application\nExec=true\nName={name}\n{line}\n", encoding="utf-8"
        )
    return {
        "XDG_DATA_HOME": "/nonexistent",
        "XDG_DATA_DIRS": str(tmp_path / "share"),
        "PATH": "",
        "HOME": str(tmp_path),
    }


@pytest.mark.parametrize(
    ("asked", "id"),
    [
        ("firefox-esr", "firefox-esr"),
        ("firefox-esr.desktop", "firefox-esr"),
        ("FIREFOX-ESR", "firefox-esr"),
        ("Firefox-ESR.Desktop", "firefox-esr"),
        ("firefox esr", "firefox-esr"),
        ("Firefox", "firefox"),  # an id ignoring case comes before a name
        ("kde-konsole", "kde-konsole"),
        ("konsole", "kde-konsole"),
        ("editor", "editor"),
        ("Editor", "Editor"),
        ("ärger strasse", "two"),
        ("Ärger Straße", "two"),
        ("CAFÉ", "three"),
        (unicodedata.normalize("NFD", "café"), "three"),
        ("four", "four"),
        ("x.desktop", "x.desktop"),
        ("x.desktop.desktop", "x.desktop"),
        ("--help", "--json"),
        ("--json", "--json"),
        ("Notepad++ (root) $HOME `x` %U; |*? 'q' \"d\" #1", "e"),
        ("Writer", "Editor"),
    ],
)
def test_found(env: dict[str, str], asked: str, id: str) -> None:
    assert applications.find(asked, env).id == id
    everything = applications.scan(env)
    assert everything.find(asked).id == id


@pytest.mark.parametrize(
    "asked", ["Fire", "firefox-es", "x", "*", ".desktop", "Notepad", "Absent", "deleted", "absent", "Panel"]
)
def test_nothing_is_guessed(env: dict[str, str], asked: str) -> None:
    for unlisted in (False, True):
        with pytest.raises(UnknownApplication):
            applications.find(asked, env, unlisted)


def test_hidden_from_the_menu_is_launched_by_its_exact_id(env: dict[str, str]) -> None:
    for id in ("menu-hidden", "menu-hidden.desktop", "elsewhere", "shadow"):
        with pytest.raises(UnknownApplication):
            applications.find(id, env)
        assert applications.find(id, env, unlisted=True).id == id.replace(".desktop", "")
    with pytest.raises(UnknownApplication):
        applications.find("Menu-Hidden", env, unlisted=True)
    # It never takes the name of a listed one.
    assert applications.find("Writer", env, unlisted=True).id == "Editor"
    assert applications.find("writer", env, unlisted=True).id == "writer"


def test_unknown_names_the_nearest(env: dict[str, str]) -> None:
    with pytest.raises(UnknownApplication) as caught:
        applications.find("Fierfox ESR", env)
    message = str(caught.value)
    start = (
        "unknown application 'Fierfox ESR': ask for the list of applications; nearest are 'Firefox ESR' (firefox-esr)"
    )
    assert message.startswith(start)
    assert caught.value.near[0] == {"id": "firefox-esr", "name": "Firefox ESR"}
    assert len(caught.value.near) <= 3
    with pytest.raises(UnknownApplication) as caught:
        applications.find("0000000", env)
    assert str(caught.value) == "unknown application '0000000': ask for the list of applications"


def test_ambiguous_names_the_ids(env: dict[str, str]) -> None:
    with pytest.raises(AmbiguousApplication) as caught:
        applications.find("EDITOR", env)
    assert str(caught.value) == "'EDITOR' is the id of two applications: launch one by id: Editor, editor"
    folder = Path(env["XDG_DATA_DIRS"], "applications")
    (folder / "firefox.desktop").rename(folder / "org.other.desktop")
    with pytest.raises(AmbiguousApplication) as caught:
        applications.find("firefox", env)
    wanted = "'firefox' is the name of two applications: launch one by id: org.mozilla.firefox, org.other"
    assert str(caught.value) == wanted
    assert caught.value.ids == ["org.mozilla.firefox", "org.other"]


@pytest.mark.parametrize(
    "asked", ["", "a" * 256, "../x", "kde/konsole", "a\\b", "a\nb", "\0", "\x7f", "\x9b", "\udcff"]
)
def test_invalid(env: dict[str, str], asked: str) -> None:
    with pytest.raises(InvalidName) as caught:
        applications.find(asked, env)
    assert len(str(caught.value).splitlines()) == 1
    str(caught.value).encode("utf-8")


def test_longest_name_is_a_name(env: dict[str, str]) -> None:
    for asked in ("a" * 255, "😀" * 255):
        with pytest.raises(UnknownApplication):
            applications.find(asked, env)


def test_wrong_type() -> None:
    with pytest.raises(InvalidName, match="text, not int"):
        applications.check_name(7)  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.text(max_size=260))
def test_any_text_is_found_or_refused_in_one_line(asked: str) -> None:
    env = {"XDG_DATA_HOME": "/nonexistent", "XDG_DATA_DIRS": "/nonexistent"}
    with pytest.raises(ApplicationError) as caught:
        applications.find(asked, env)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 500


FILE = applications.__file__
# As text it is alone: no site-packages, no package.
WAYS = {
    "file": [sys.executable, FILE],
    "text": [sys.executable, "-I", "-S", "-c", Path(FILE).read_text(encoding="utf-8")],
}


def run(env: dict[str, str], *arguments: str, way: str = "file") -> subprocess.CompletedProcess[str]:
    command = [*WAYS[way], *arguments]
    return subprocess.run(command, env=env, cwd="/", capture_output=True, encoding="utf-8", timeout=30, check=False)


@pytest.mark.parametrize("way", sorted(WAYS))
def test_list_json(env: dict[str, str], way: str) -> None:
    done = run(env, "list", "--json", way=way)
    rows = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["id"] for row in rows] == [entry.id for entry in applications.list_applications(env)]
    assert rows[0].keys() == {"id", "name", "path"}
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize(
    ("arguments", "id"),
    [
        (["--json", "konsole"], "kde-konsole"),
        (["konsole", "--json"], "kde-konsole"),
        (["--json", "--", "konsole"], "kde-konsole"),
        (["--json", "--", "--json"], "--json"),
        (["--json", "--help"], "--json"),
        (["--json", "--unlisted", "menu-hidden"], "menu-hidden"),
    ],
)
def test_find_json(env: dict[str, str], way: str, arguments: list[str], id: str) -> None:
    done = run(env, "find", *arguments, way=way)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["id"] == id


@pytest.mark.parametrize(
    "arguments",
    [
        ["find", "--json", "Fierfox"],
        ["find", "--json", "EDITOR"],
        ["find", "--json", ""],
        ["find", "--json", "a/b"],
        ["find", "--json", "--json"],
        ["find", "--json", "--"],
        ["find", "--json", "-h"],
        ["find"],
        ["find", "a", "b"],
        ["find", "a", "--", "b"],
        ["list", "a"],
        ["nonsense"],
        [],
    ],
)
def test_refused_with_one_line(env: dict[str, str], arguments: list[str]) -> None:
    done = run(env, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_name_that_is_no_text(env: dict[str, str]) -> None:
    done = subprocess.run([*WAYS["file"], "find", b"caf\xe9"], env=env, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr


def test_usage_and_plain_rows(env: dict[str, str]) -> None:
    assert run(env, "--help").stdout.startswith("usage: ")
    rows = run(env, "list").stdout.splitlines()
    assert [row.split("\t")[0] for row in rows] == [entry.id for entry in applications.list_applications(env)]
    assert run(env, "find", "four").stdout.startswith("four\t'a\\nb'\t")


def test_verbose_says_where_it_looked_and_what_was_broken(env: dict[str, str]) -> None:
    folder = Path(env["XDG_DATA_DIRS"], "applications")
    (folder / "bad.desktop").write_text("junk")
    done = run(env, "list", "--json", "--verbose")
    # A machine may have exports of its own.
    assert [line for line in done.stderr.splitlines() if not line.startswith("searched /var/lib/")] == [
        "searched /nonexistent/applications (not there)",
        f"searched {folder}",
        "skipped 1 broken file",
        f"  {folder}/bad.desktop: a line is neither a comment, a group nor a key with a value",
    ]
    assert json.loads(done.stdout)


@pytest.mark.parametrize("locale", ["C", "de_DE.ISO-8859-1", "zz"])
def test_names_are_utf_8_in_any_locale(env: dict[str, str], locale: str) -> None:
    done = run({**env, "LC_ALL": locale, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, "list", "--json")
    assert "ÄRGER STRASSE" in [row["name"] for row in json.loads(done.stdout)]


def test_reader_that_stops_early(env: dict[str, str]) -> None:
    process = subprocess.Popen([*WAYS["file"], "list"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=30) == 0
