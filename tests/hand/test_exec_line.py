"""The Exec line: escapes, quoting, field codes, and what is refused; the same arguments as GLib's launch."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deskhand.hand import applications
from deskhand.hand.exec_line import ExecLineError, entry_arguments, parse_exec, split_quoted

NAME, ICON, PATH = "My App %f", "an icon", "/usr/share/applications/my app.desktop"

# As in the file, the arguments after the program. Those below are GLib's too.
SAME_AS_GLIB = [
    (
        r'--p 100%% "two words" %c %i %k --open=%f %U',
        ["--p", "100%", "two words", NAME, "--icon", ICON, PATH, "--open="],
    ),
    ("", []),
    ("%f %F %u %U", []),
    ("%d %D %n %N %v %m x", ["x"]),
    ("%u%F", []),
    ("a%fb", ["ab"]),
    ("%%f %%%f", ["%f", "%"]),
    ("%c%c", [NAME + NAME]),
    ("x%iy", ["x--icon", ICON + "y"]),
    ("%i%i", ["--icon", ICON + "--icon", ICON]),
    ('"%f"', [""]),
    ('"a %f b"', ["a  b"]),
    ('%f""', [""]),
    ('"%%c"', ["%c"]),
    ('"100%%"', ["100%"]),
    ("\"\" ''", ["", ""]),
    ("a\"b c\"d'e f' g", ["ab cde f", "g"]),
    ("sh -c 'x y; \"z\"'", ["sh", "-c", 'x y; "z"']),
    ("$HOME ~ > & | ; * ? ( ) `id` $(id)", ["$HOME", "~", ">", "&", "|", ";", "*", "?", "(", ")", "`id`", "$(id)"]),
    ("a\\sb\\tc\\nd", ["a", "b", "c", "d"]),
    ("a\\rb", ["a\rb"]),
    (r"a\\ b", ["a b"]),
    (r'"a\\\\b" "a\\"b" "\\$x \\` \\x"', [r"a\b", 'a"b', r"$x ` \x"]),
    (r"'a\\b'", [r"a\b"]),
    ('"a\\\\\\nb" a\\\\\\nb', ["a\nb", "ab"]),
    ("a#b # c d", ["a#b"]),
    ("#a\\nb", ["b"]),
    ('"#" \\\\# a', ["#", "#", "a"]),
    ("é \N{GRINNING FACE}", ["é", "\N{GRINNING FACE}"]),
    ("a  b   ", ["a", "b"]),
]
# Where we differ on purpose: the module says why.
OURS = [
    ('"%c"', [NAME]),
    ("'%c'", [NAME]),
    ('"%k"', [PATH]),
    ('"%i"', ["--icon", ICON]),
    (r"\\%f x", ["x"]),
]
REFUSED = [
    ('"a', "not closed"),
    ("don't", "not closed"),
    ('"a\\\\"', "not closed"),
    ("a\\\\", "backslash"),
    ("%z", "%z is no field code"),
    ("%C", "%C is no field code"),
    ('"%é"', "%é is no field code"),
    ("a%", "single %"),
    ("% b", "single %"),
    ("%\\n", "single %"),
]


def parse(line: str) -> list[str]:
    return parse_exec(line, name=NAME, path=PATH, icon=ICON)


@pytest.mark.parametrize(("line", "arguments"), SAME_AS_GLIB + OURS)
def test_arguments(line: str, arguments: list[str]) -> None:
    assert parse(f"show {line}") == ["show", *arguments]


@pytest.mark.parametrize(("line", "reason"), REFUSED)
def test_refused(line: str, reason: str) -> None:
    with pytest.raises(ExecLineError, match=reason) as caught:
        parse(f"show {line}")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("line", ["", " ", "\\n", "%f", '""', '"" a', "# a", "%i"])
def test_no_program(line: str) -> None:
    with pytest.raises(ExecLineError, match="names no program"):
        parse_exec(line, name="", path="")


def test_without_icon_and_with_empty_name() -> None:
    assert parse_exec("show %i %c --x=%c") == ["show", "--x="]
    assert parse_exec("show %i x", icon="") == ["show", "x"]
    assert parse_exec("show %k") == ["show"]


def test_what_is_inserted_is_not_read_again() -> None:
    evil = "%f \"a' \\n $(id) #"
    assert parse_exec("show %c %k %i", name=evil, path=evil, icon=evil) == ["show", evil, evil, "--icon", evil]


def test_nul_and_length() -> None:
    with pytest.raises(ExecLineError, match="NUL"):
        parse_exec("show a\0b")
    with pytest.raises(ExecLineError, match="longer than"):
        parse_exec("show " + "x" * 200_000)
    with pytest.raises(ExecLineError, match="longer than"):
        parse_exec("show " + "%c" * 50_000, name="n" * 1000)


def test_entry_arguments(tmp_path: Path) -> None:
    path = tmp_path / "x.desktop"
    lines = ["[Desktop Entry]", "Type=Application", "Name=N", "Name[de]=Der Name", "Icon=i", r'Exec=show "%c" %i %k']
    path.write_text("\n".join(lines))
    entry = applications.read_entry(str(path), "x", {"LANG": "de", "PATH": ""})
    assert entry_arguments(entry) == ["show", "Der Name", "--icon", "i", str(path)]
    path.write_text("\n".join([*lines[:3], "DBusActivatable=true"]))
    with pytest.raises(ExecLineError, match="x has none"):
        entry_arguments(applications.read_entry(str(path), "x", {}))


def quoted(argument: str) -> str:
    """As the specification says to write any argument: escaped in double quotes, then as a string value."""
    text = '"' + "".join("\\" + c if c in '"`$\\' else c for c in argument.replace("%", "%%")) + '"'
    for character, escape in (("\\", "\\\\"), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
        text = text.replace(character, escape)
    return text


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@settings(deadline=None)
@given(st.lists(TEXT, max_size=5))
@example(["\\\n", '"', "%f", "", "$`\\", "\\s"])
def test_what_is_quoted_comes_back(arguments: list[str]) -> None:
    assert parse_exec(" ".join(["show", *map(quoted, arguments)])) == ["show", *arguments]


@settings(deadline=None)
@given(st.text(st.sampled_from("a%cfki\"'\\ #\tsn$\n")), TEXT)
def test_any_line_has_arguments_or_is_refused(line: str, name: str) -> None:
    try:
        arguments = parse_exec(line, name=name, icon=name)
    except ExecLineError:
        arguments = ["refused"]
    assert arguments[0]


@settings(deadline=None)
@given(st.text(st.sampled_from("ab \"'\\#\t\n")))
def test_the_lookup_lists_what_can_be_split(line: str) -> None:
    """``applications`` has a short form of this check. Only a comment, in which a quote is none, tells them apart."""
    try:
        split = bool(split_quoted(line))
    except ValueError:
        split = False
    if "#" not in line:
        value = line.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
        assert applications._can_start({"Exec": value}) == split


PYTHON = "/usr/bin/python3"
LAUNCH = """
import json, os, select, sys
import gi
gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib
try:
    gi.require_version("GioUnix", "2.0")
    from gi.repository import GioUnix
    Info = GioUnix.DesktopAppInfo
except (ImportError, ValueError):
    Info = Gio.DesktopAppInfo
top, head, lines = json.load(sys.stdin)
fifo = os.path.join(top, "answer")
os.mkfifo(fifo)
# The writing end stays open, so that reading waits for the program and does not end between two.
read, write = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), os.open(fifo, os.O_WRONLY)
answers = []
for line in lines:
    path = os.path.join(top, "my app.desktop")
    with open(path, "w") as file:
        file.write(head + line + "\\n")
    Info.new_from_filename(path).launch([], None)
    answer = b""
    while not answer.endswith(b"\\n"):
        if not select.select([read], [], [], 20)[0]:
            sys.exit("the program of %r did not start" % line)
        answer += os.read(read, 65536)
    answers.append(json.loads(answer))
json.dump(answers, sys.stdout)
"""


def test_same_arguments_as_glib(tmp_path: Path) -> None:
    if not os.path.exists(PYTHON) or subprocess.run([PYTHON, "-c", "import gi"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no GLib bindings for /usr/bin/python3 (Debian: python3-gi)")
    show = tmp_path / "show"
    code = f"import json, sys\nopen({str(tmp_path / 'answer')!r}, 'w').write(json.dumps(sys.argv[1:]) + '\\n')\n"
    show.write_text(f"#!{PYTHON} -IS\n{code}")
    show.chmod(0o755)
    head = f"[Desktop Entry]\nType=Application\nName={NAME}\nIcon={ICON}\nExec={show} "
    asked = json.dumps([str(tmp_path), head, [line for line, _ in SAME_AS_GLIB]])
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [PYTHON, "-c", LAUNCH], env=env, input=asked, stdout=subprocess.PIPE, encoding="utf-8", timeout=120, check=True
    )
    here = str(tmp_path / "my app.desktop")
    wanted = [[argument.replace(PATH, here) for argument in arguments] for _, arguments in SAME_AS_GLIB]
    assert json.loads(done.stdout) == wanted
