"""What is listed: directories, precedence, filters, locale, and files that are no entries. Entries of our own."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deskhand.hand import applications
from deskhand.hand.applications import Applications, BrokenEntry, locale_names, searched_directories

GOOD = "[Desktop Entry]\nType=Application\nName={name}\nExec=true\n"


class Tree:
    """Data directories with entries in them, and the environment that leads to them."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.env: dict[str, str] = {
            "HOME": str(top / "user"),
            "XDG_DATA_HOME": str(top / "home"),
            "XDG_DATA_DIRS": f"{top}/a:{top}/b",
            "XDG_CURRENT_DESKTOP": "XFCE",
            "PATH": str(top / "bin"),
            "LANG": "C.UTF-8",
        }

    def put(self, where: str, *lines: str, raw: bytes | None = None) -> Path:
        """An entry at ``where``, such as ``a/x.desktop``, with ``lines`` after the keys that every entry needs."""
        place, _, rest = where.partition("/")
        path = self.top / place / "applications" / rest
        path.parent.mkdir(parents=True, exist_ok=True)
        text = GOOD.format(name=path.stem) + "".join(line + "\n" for line in lines)
        path.write_bytes(text.encode() if raw is None else raw)
        return path

    def program(self, name: str, mode: int = 0o755) -> Path:
        path = self.top / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(mode)
        return path

    def names(self, **env: str | None) -> dict[str, str]:
        changed = {**self.env, **{key: value for key, value in env.items() if value is not None}}
        for key, value in env.items():
            if value is None:
                del changed[key]
        return {entry.id: entry.name for entry in applications.list_applications(changed)}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_entry_has_what_launching_needs(tree: Tree) -> None:
    path = tree.put(
        "a/kde/edit.desktop",
        "Exec=edit --name=%c \\\\\\\\ %F",
        "Path=/srv/a\\sb",
        "TryExec=edit",
        "Icon=edit",
        "Icon[de]=bearbeiten",
        "Terminal=true",
        "DBusActivatable=false",
        "StartupNotify=true",
        "StartupWMClass=Edit",
    )
    tree.program("edit")
    (entry,) = applications.list_applications({**tree.env, "LANG": "de_DE.UTF-8"})
    assert (entry.id, entry.name, entry.path) == ("kde-edit", "edit", str(path))
    assert entry.exec == r"edit --name=%c \\\\ %F"
    assert (entry.path_key, entry.try_exec, entry.icon) == ("/srv/a b", "edit", "bearbeiten")
    assert (entry.terminal, entry.dbus_activatable, entry.startup_notify) == (True, False, True)
    assert (entry.startup_wm_class, entry.listed, entry.launchable) == ("Edit", True, True)


def test_what_an_entry_does_not_say(tree: Tree) -> None:
    tree.put("a/x.desktop")
    entry = applications.find("x", tree.env)
    assert (entry.path_key, entry.icon, entry.try_exec, entry.startup_wm_class) == (None, None, None, None)
    assert (entry.startup_notify, entry.terminal) == (None, False)


def test_sorted_by_folded_name_then_id(tree: Tree) -> None:
    for id, name in (("1", "beta"), ("2", "Alpha"), ("3", "Beta"), ("4", "Ärger"), ("5", "alpha")):
        tree.put(f"a/{id}.desktop", f"Name={name}")
    assert list(tree.names()) == ["2", "5", "1", "3", "4"]


@pytest.mark.parametrize("first", ["Hidden=true", "NoDisplay=true", "Type=Link", "Exec=", "junk", "TryExec=no-such-zz"])
def test_first_file_has_the_id_whatever_it_holds(tree: Tree, first: str) -> None:
    tree.put("home/x.desktop", first)
    tree.put("a/x.desktop")
    tree.put("b/y.desktop")
    assert tree.names() == {"y": "y"}


def test_file_beside_a_directory_with_the_same_id(tree: Tree) -> None:
    tree.put("a/kde/x.desktop", "Name=below")
    tree.put("a/kde-x.desktop", "Name=top")
    assert tree.names() == {"kde-x": "top"}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("NoDisplay=true", False),
        ("NoDisplay=1", False),
        ("NoDisplay = true  ", False),
        ("NoDisplay=True", True),
        ("NoDisplay=yes", True),
        ("NoDisplay=true\nNoDisplay=false", True),
        ("Hidden=true", False),
        ("Type=application", False),
        ("Type=Directory", False),
        ("OnlyShowIn=", False),
        ("OnlyShowIn=;XFCE", True),
        ("OnlyShowIn=XF\\sCE;", False),
        ("OnlyShowIn=XFCE\\;GNOME;", False),
        ("NotShowIn=", True),
        ("NotShowIn=GNOME;XFCE", False),
        ("OnlyShowIn=XFCE;\nNotShowIn=XFCE;", True),
        ("DBusActivatable=true\nExec=", True),
        ("Exec=", False),
        ("Exec=\\s", False),
        ('Exec=true "not closed', False),
        ("Exec=sh -c 'echo \"$1\"' \\\\\\\\", True),
        ("Exec=no-such-program-zz", True),
        ("[Desktop Action new]\nNoDisplay=true\nName=Other", True),
        ("[X]\na=b\n[Desktop Entry]\nNoDisplay=true", False),
    ],
)
def test_filters(tree: Tree, line: str, shown: bool) -> None:
    tree.put("a/x.desktop", *line.split("\n"))
    assert tree.names() == ({"x": "x"} if shown else {})


@pytest.mark.parametrize(
    ("desktop", "shown"),
    [
        (None, ["both", "not-gnome", "xfce"]),
        ("", ["both", "not-gnome", "xfce"]),
        (":", ["both", "not-gnome", "xfce"]),
        ("GNOME", ["gnome"]),
        ("ubuntu:GNOME", ["gnome", "ubuntu"]),
        ("XFCE:GNOME", ["both", "gnome", "xfce"]),
        ("GNOME:XFCE", ["gnome", "xfce"]),
        ("xfce", ["not-gnome"]),
    ],
)
def test_current_desktop(tree: Tree, desktop: str | None, shown: list[str]) -> None:
    tree.put("a/xfce.desktop", "OnlyShowIn=XFCE;")
    tree.put("a/gnome.desktop", "OnlyShowIn=GNOME;")
    tree.put("a/ubuntu.desktop", "OnlyShowIn=ubuntu")
    tree.put("a/not-gnome.desktop", "NotShowIn=GNOME;")
    # The first of the desktop's names that either key holds decides.
    tree.put("a/both.desktop", "OnlyShowIn=XFCE;", "NotShowIn=GNOME;")
    assert sorted(tree.names(XDG_CURRENT_DESKTOP=desktop)) == shown


def test_try_exec(tree: Tree) -> None:
    program = tree.program("there")
    tree.program("not-executable", 0o644)
    (tree.top / "bin" / "directory").mkdir()
    values = {
        "by-path": "there",
        "absolute": str(program),
        "below-path-key": "bin/there",
        "no-exec": "not-executable",
        "dir": "directory",
        "absent": "no-such-zz",
        "absent-absolute": "/no/such-zz",
        "arguments": "there --x",
        "empty": "",
    }
    for id, value in values.items():
        tree.put(f"a/{id}.desktop", f"TryExec={value}", f"Path={tree.top if id == 'below-path-key' else ''}")
    assert sorted(tree.names()) == ["absolute", "below-path-key", "by-path", "empty"]
    # No directory of PATH is taken from where we stand.
    assert sorted(tree.names(PATH="bin::")) == ["absolute", "below-path-key", "empty"]


@pytest.mark.parametrize(
    ("env", "wanted"),
    [
        ({"LANG": "de_AT.UTF-8@euro"}, ["de_AT@euro", "de_AT", "de@euro", "de"]),
        ({"LANG": "de"}, ["de"]),
        ({"LANG": "fr", "LC_MESSAGES": "pl_PL"}, ["pl_PL", "pl"]),
        ({"LANG": "fr", "LC_MESSAGES": "pl", "LC_ALL": "sr@latin"}, ["sr@latin", "sr"]),
        ({"LANG": "fr", "LC_ALL": ""}, ["fr"]),
        ({"LANGUAGE": "de", "LANG": "C"}, ["C"]),
        ({"LANG": ".UTF-8"}, []),
        ({}, ["C"]),
    ],
)
def test_locale_order(env: dict[str, str], wanted: list[str]) -> None:
    assert locale_names(env) == wanted


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (["Name[de]=D", "Name[de_DE]=DE", "Name[de@euro]=E"], "DE"),
        (["Name[de]=D", "Name[de@euro]=E"], "E"),
        (["Name[de]=D", "Name[fr]=F"], "D"),
        (["Name[DE]=D", "Name[de_AT]=A"], "x"),
        (["Name[de] = spaced"], "spaced"),
        (["Name[de_DE]=", "Name[de]=D"], "D"),
        (["Name[de]=a\\sb\\tc\\\\s"], "a b\tc\\s"),
        (["Name[de]=one", "Name[de]=two"], "two"),
    ],
)
def test_localized_name(tree: Tree, lines: list[str], name: str) -> None:
    tree.put("a/x.desktop", *lines)
    assert tree.names(LANG="de_DE.UTF-8@euro") == {"x": name}


def test_directories(tree: Tree) -> None:
    top = tree.top
    (top / "user/.local/share/flatpak/exports/share").mkdir(parents=True)
    found = searched_directories({**tree.env, "XDG_DATA_DIRS": f"{top}/a/::{top}//a:relative:{top}/b"})
    own = [str(top / name / "applications") for name in ("home", "a", "b", "user/.local/share/flatpak/exports/share")]
    assert found[:4] == own


@pytest.mark.parametrize("value", [None, "", "relative/share", ":"])
def test_default_directories(value: str | None) -> None:
    env = {"HOME": "/home/somebody"}
    if value is not None:
        env.update(XDG_DATA_HOME=value, XDG_DATA_DIRS=value)
    assert searched_directories(env)[:3] == [
        "/home/somebody/.local/share/applications",
        "/usr/local/share/applications",
        "/usr/share/applications",
    ]


def test_no_home() -> None:
    assert searched_directories({})[0] == "/usr/local/share/applications"
    assert searched_directories({"HOME": "here"})[0] == "/usr/local/share/applications"


def test_exports_come_last(tree: Tree) -> None:
    share = tree.top / "user/.local/share/flatpak/exports/share/applications"
    share.mkdir(parents=True)
    for id in ("only", "both"):
        (share / f"{id}.desktop").write_text(GOOD.format(name=f"{id} exported"))
    tree.put("b/both.desktop")
    assert tree.names() == {"only": "only exported", "both": "both"}


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "no-group": b"hello\nworld\n",
    "other-group-first": b"[X]\na=b\n" + GOOD.format(name="n").encode(),
    "key-first": b"Name=x\n" + GOOD.format(name="n").encode(),
    "bom": b"\xef\xbb\xbf" + GOOD.format(name="n").encode(),
    "utf-16": GOOD.format(name="n").encode("utf-16"),
    "no-name": b"[Desktop Entry]\nType=Application\nExec=true\n",
    "empty-name": b"[Desktop Entry]\nType=Application\nExec=true\nName=\n",
    "bad-name": b"[Desktop Entry]\nType=Application\nExec=true\nName=\xff\n",
    "junk-line": GOOD.format(name="n").encode() + b"junk\n",
    "junk-later": GOOD.format(name="n").encode() + b"[X]\njunk\n",
    "bad-key": GOOD.format(name="n").encode() + b"Foo[de=x\n",
    "encoding": GOOD.format(name="n").encode() + b"Encoding=ISO-8859-1\n",
    "big": GOOD.format(name="n").encode() + b"# " + b"x" * (1 << 20),
    "old-mac": GOOD.format(name="n").replace("\n", "\r").encode(),
}


@pytest.mark.parametrize("kind", sorted(BROKEN))
def test_broken_file_is_skipped_and_counted(tree: Tree, kind: str) -> None:
    path = tree.put(f"a/{kind}.desktop", raw=BROKEN[kind])
    tree.put("a/keep.desktop")
    found = applications.scan(tree.env)
    assert [entry.id for entry in found.listed()] == ["keep"]
    assert [broken for broken, _ in found.broken] == [str(path)]
    with pytest.raises(BrokenEntry, match=kind):
        applications.read_entry(str(path), kind, tree.env)


@pytest.mark.parametrize(
    "raw",
    [
        GOOD.format(name="n").replace("\n", "\r\n").encode(),
        GOOD.format(name="n").rstrip("\n").encode(),
        GOOD.format(name="n").encode() + b"Comment=\xff\xfe\n# caf\xe9\n",
        b"#!/usr/bin/env xdg-open\n\n  \n" + GOOD.format(name="n").encode(),
        b"  [Desktop Entry] \t\n Type=  Application\n\tName\t= n\nExec =true",
        GOOD.format(name="n").encode() + b"# " + b"x" * ((1 << 20) - len(GOOD.format(name="n")) - 2),
        b"[Desktop Entry]\nType=Application\nExec=true\r\nName=n\r",
        GOOD.format(name="n\0x").encode(),
    ],
)
def test_odd_file_that_is_an_entry(tree: Tree, raw: bytes) -> None:
    tree.put("a/x.desktop", raw=raw)
    assert tree.names() == {"x": "n"}


def test_what_is_no_regular_file(tree: Tree) -> None:
    folder = tree.put("a/keep.desktop").parent
    os.mkfifo(folder / "fifo.desktop")
    (folder / "directory.desktop").mkdir()
    (folder / "gone.desktop").symlink_to("no-such-file")
    (folder / "loop.desktop").symlink_to("loop.desktop")
    (folder / "null.desktop").symlink_to("/dev/null")
    (folder / "zero.desktop").symlink_to("/dev/zero")
    (folder / ".desktop").write_text(GOOD.format(name="no id"))
    (folder / "loop").symlink_to("loop")
    (folder / "dots").symlink_to(".")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s.desktop"))
    with open(os.fsencode(folder) + b"/caf\xe9.desktop", "w") as file:
        file.write(GOOD.format(name="not UTF-8"))
    found = applications.scan(tree.env)
    assert [entry.id for entry in found.listed()] == ["keep"]
    assert len(found.broken) == 8


def test_masked_by_a_device(tree: Tree) -> None:
    tree.put("a/x.desktop")
    tree.put("home/y.desktop").with_name("x.desktop").symlink_to("/dev/null")
    assert tree.names() == {"y": "y"}


@pytest.fixture
def open_tree() -> Iterator[Tree]:
    """A tree whose parents any account can enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="deskhand-test-") as top:
        os.chmod(top, 0o755)
        yield Tree(Path(top))


def test_file_and_directory_without_permission(open_tree: Tree) -> None:
    open_tree.put("a/keep.desktop")
    file = open_tree.put("a/x.desktop")
    folder = open_tree.put("a/sub/y.desktop").parent
    file.chmod(0)
    folder.chmod(0)
    pid = os.fork()
    if pid == 0:
        ids: list[str] = []
        try:
            if os.getuid() == 0:  # root may read everything
                os.setgid(65534)
                os.setuid(65534)
            found = applications.scan(open_tree.env)
            ids = [entry.id for entry in found.listed()] + sorted(path for path, _ in found.broken)
        finally:
            os._exit(0 if ids == ["keep", str(folder), str(file)] else 1)
    assert os.waitpid(pid, 0)[1] == 0
    folder.chmod(0o755)


def test_links_to_directories(tree: Tree) -> None:
    real = tree.top / "real"
    real.mkdir()
    (real / "x.desktop").write_text(GOOD.format(name="X"))
    folder = tree.put("a/keep.desktop").parent
    (folder / "one").symlink_to(real)
    (folder / "two").symlink_to(real)
    (real / "up").symlink_to(folder)
    assert {"one-x", "two-x", "keep"} <= set(tree.names())


def test_links_that_multiply_are_bounded(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "MAX_DIRECTORIES", 200)
    folder = tree.put("a/keep.desktop").parent
    for number in range(8):
        (folder / f"d{number}").mkdir()
        for other in range(8):
            (folder / f"d{number}" / f"to{other}").symlink_to(folder / f"d{other}")
    found = applications.scan(tree.env)
    assert [entry.id for entry in found.listed()] == ["keep"]
    assert "the rest is left out" in found.broken[0][1]


def test_searched_and_files_before_anything_is_read(tree: Tree) -> None:
    tree.put("a/x.desktop", raw=b"")
    found = Applications(tree.env)
    assert list(found.files) == ["x"]
    assert found.broken == []


@settings(deadline=None)
@given(st.binary(max_size=300))
@example(b"[Desktop Entry]\nName[" + b"\xff" * 9 + b"]=\\")
@example(b"[Desktop Entry]\r\n=\r\n")
def test_any_bytes_are_an_entry_or_broken(data: bytes) -> None:
    for head in (b"", b"[Desktop Entry]\nType=Application\nName=n\nExec=true\n"):
        check_bytes(head + data)


LINE = st.sampled_from(
    [
        b"[Desktop Entry]",
        b"[X]",
        b"Name=a",
        b"Name[de]=b\\",
        b"OnlyShowIn=a\\;b;",
        b"Exec='",
        b"\0",
        b"Hidden=\\s",
        b"#",
    ]
)


@settings(deadline=None)
@given(st.lists(st.one_of(LINE, st.binary(max_size=8)), max_size=12))
def test_any_lines_are_an_entry_or_broken(lines: list[bytes]) -> None:
    check_bytes(b"\n".join(lines))


def check_bytes(data: bytes) -> None:
    keys = {key.encode(): True for key in ("Name", "Name[de]", "Exec", "OnlyShowIn", "Hidden")}
    try:
        values = applications._main_group(data, keys)
    except BrokenEntry:
        return
    for value in values.values():
        assert isinstance(applications.unescape(value), str)
        assert all(applications._strings(value))
