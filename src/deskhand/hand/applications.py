"""The applications of a desktop: listing them, and finding one by the name the desktop shows.

This file is the only lookup of the project. It stands alone: standard library, Python 3.9 and newer, nothing of the
package, so that it also runs where nothing of ours is installed::

    python3 applications.py list [--json] [--verbose]
    python3 applications.py find [--json] [--verbose] [--unlisted] [--] NAME
    python3 -c "$(cat applications.py)" list --json

It reads the environment (XDG_DATA_HOME, XDG_DATA_DIRS, XDG_CURRENT_DESKTOP, LC_ALL, LC_MESSAGES, LANG, HOME, PATH) and
the desktop entries it leads to, and nothing else. Sources: Desktop Entry Specification 1.5, XDG Base Directory
Specification, Desktop Menu Specification. Where they leave a question open the answer is GLib's, as the programs that
open an entry (``exo-open``, ``gio launch``) read it with GLib: what they can not load is not listed.

Errors::

    ApplicationError
    ├── InvalidName            what was asked for can not be a name
    ├── UnknownApplication     no entry has this id or name; ``near`` holds the nearest
    ├── AmbiguousApplication   more than one entry has it; ``ids`` says which
    └── BrokenEntry            a file that is not a desktop entry
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

ENDING = ".desktop"
MAX_NAME = 255
#: A larger file is not read: no real entry comes near, and a listing must not depend on one bad file.
MAX_BYTES = 1 << 20
#: Directories walked at most. Links between directories can multiply without end and without a loop.
MAX_DIRECTORIES = 4096
#: Key names remembered as well formed during one scan.
MAX_KEYS = 20000
#: Exports that the environment of a service often lacks. The first stands below HOME.
EXPORTS = (".local/share/flatpak/exports/share", "/var/lib/flatpak/exports/share", "/var/lib/snapd/desktop")
#: What the GKeyFile format calls space: ASCII space without the vertical tab.
_SPACE = b" \t\n\f\r"
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
#: A backslash at the end escapes nothing and is dropped.
_ESCAPES = {"s": " ", "n": "\n", "t": "\t", "r": "\r", "\\": "\\", "": ""}
#: One part of a list that semicolons end. Empty parts are nobody's name.
_PART = re.compile(r"(?:[^;\\]+|\\.?)+", re.DOTALL)
_KEYS = (
    "Type", "Encoding", "Name", "Icon", "Exec", "TryExec", "Path", "Terminal", "DBusActivatable", "StartupNotify",
    "StartupWMClass", "NoDisplay", "Hidden", "OnlyShowIn", "NotShowIn",
)  # fmt: skip
#: An Exec line with an argument in it and every quotation closed; ``exec_line`` reads them. No opener loads another.
_QUOTED = r'"(?:[^"\\]|\\.)*"' + r"|'[^']*'"
_STARTABLE = re.compile(
    rf"""(?:[ \t\n]|\\\n)*(?:[^"'\\ \t\n#]|\\[^\n]|{_QUOTED})(?:[^"'\\]|\\.|{_QUOTED})*""", re.DOTALL
)
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class ApplicationError(Exception):
    """Base of the lookup's errors. ``str(error)`` is one line: what happened, and what to do. Nothing was started."""

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        #: Machine-readable detail that belongs beside the sentence.
        self.facts = facts


class InvalidName(ApplicationError):
    """What was asked for is not 1 to 255 characters, or holds ``/``, ``\\`` or a control character."""


class UnknownApplication(ApplicationError):
    """No entry has this id or name. ``near``: the nearest, at most three ``{"id", "name"}``, the best first."""

    def __init__(self, message: str, near: list[dict[str, str]]) -> None:
        super().__init__(message, near=near)
        self.near = near


class AmbiguousApplication(ApplicationError):
    """Several entries have this id (in another case) or name. ``ids``: theirs, sorted; each can be asked for."""

    def __init__(self, message: str, ids: list[str]) -> None:
        super().__init__(message, ids=ids)
        self.ids = ids


class BrokenEntry(ApplicationError):
    """A file that can not be read as a desktop entry. It keeps its id, and is neither listed nor launched."""


class Entry:
    """One desktop entry: what a listing shows of it, and what launching it needs.

    ``id`` is the desktop file id without ``.desktop`` (Desktop Menu Specification), ``name`` the name shown in this
    locale, ``path`` the file's. ``launchable`` is false when it is deleted (``Hidden``), not installed (``TryExec``),
    no application, or has no way to be started; ``listed`` also when it is hidden from this desktop's menu.
    """

    __slots__ = ("_values", "id", "launchable", "listed", "name", "path")

    def __init__(
        self, id: str, path: str, name: str, values: Mapping[str, str], launchable: bool, listed: bool
    ) -> None:
        self.id = id
        self.path = path
        self.name = name
        self.launchable = launchable
        self.listed = listed
        self._values = values

    def __repr__(self) -> str:
        return f"Entry({self.id!r}, {self.name!r}, {self.path!r})"

    def _text(self, key: str) -> str | None:
        return unescape(self._values.get(key, "")) or None

    @property
    def exec(self) -> str | None:
        """``Exec`` as it stands in the file, escapes and quotes included: ``exec_line.parse_exec`` reads it."""
        return self._values.get("Exec") or None

    @property
    def path_key(self) -> str | None:
        """``Path``: the directory to start the program in."""
        return self._text("Path")

    @property
    def try_exec(self) -> str | None:
        return self._text("TryExec")

    @property
    def icon(self) -> str | None:
        """``Icon`` for this locale: a name in the icon theme, or an absolute path."""
        return self._text("Icon")

    @property
    def terminal(self) -> bool:
        return _is_true(self._values.get("Terminal"))

    @property
    def dbus_activatable(self) -> bool:
        return _is_true(self._values.get("DBusActivatable"))

    @property
    def startup_notify(self) -> bool | None:
        """``StartupNotify``; None when the entry does not say (Startup Notification Specification)."""
        value = self._values.get("StartupNotify")
        return None if value is None else _is_true(value)

    @property
    def startup_wm_class(self) -> str | None:
        """``StartupWMClass``: the class or instance name of a window it will map (ICCCM, WM_CLASS)."""
        return self._text("StartupWMClass")

    def as_dict(self) -> dict[str, str]:
        """``{"id", "name", "path"}``, the shape of ``list --json``. A path that is no UTF-8 has ``?`` in it."""
        return {"id": self.id, "name": self.name, "path": self.path.encode("utf-8", "replace").decode("utf-8")}


def unescape(value: str) -> str:
    r"""Decode ``\s \n \t \r \\``; any other pair stays as it is (Desktop Entry Specification, Possible value types).

    >>> unescape(r"Two\s\sspaces, one \\ and a \q")
    'Two  spaces, one \\ and a \\q'
    """
    return _ESCAPE.sub(lambda pair: _ESCAPES.get(pair[1], pair[0]), value) if "\\" in value else value


def _is_true(value: str | None) -> bool:
    # "1" is the older specification's true; GLib still takes it.
    return value is not None and value.rstrip(" \t\n\f\r") in ("true", "1")


def _strings(value: str) -> list[str]:
    """The parts of a ``string(s)`` value: ended by ``;``, where ``\\;`` is a semicolon in a part."""
    escapes = {**_ESCAPES, ";": ";"}
    return [_ESCAPE.sub(lambda pair: escapes.get(pair[1], pair[0]), part) for part in _PART.findall(value)]


def locale_names(env: Mapping[str, str]) -> list[str]:
    """The locales whose ``Name[...]`` is taken, best first (Desktop Entry Specification, Localized values for keys).

    >>> locale_names({"LANG": "sr_RS.UTF-8@latin"})
    ['sr_RS@latin', 'sr_RS', 'sr@latin', 'sr']
    """
    value = env.get("LC_ALL") or env.get("LC_MESSAGES") or env.get("LANG") or "C"
    rest, at, modifier = value.partition("@")
    language, underscore, country = rest.partition(".")[0].partition("_")
    names = [language + underscore + country + at + modifier, language + underscore + country]
    names += [language + at + modifier, language]
    return list(dict.fromkeys(names)) if language else []


def searched_directories(env: Mapping[str, str]) -> list[str]:
    """The ``applications`` directories in order of precedence, whether they exist or not; exports only if they do.

    XDG Base Directory Specification, Environment variables: relative paths are ignored, an unset or empty variable has
    its default.
    """
    home = env.get("HOME", "")
    own = env.get("XDG_DATA_HOME", "")
    if not os.path.isabs(own):
        own = os.path.join(home, ".local/share")
    shared = [path for path in env.get("XDG_DATA_DIRS", "").split(":") if os.path.isabs(path)]
    found: dict[str, None] = {}
    for path in [own] + (shared or ["/usr/local/share", "/usr/share"]):
        if os.path.isabs(path):
            found.setdefault(os.path.normpath(path))
    for path in EXPORTS:
        path = os.path.join(home, path)
        if os.path.isabs(path) and os.path.isdir(path):
            found.setdefault(os.path.normpath(path))
    return [os.path.join(path, "applications") for path in found]


class _Rules:
    """What the environment decides about an entry: the locale's keys, the desktop's names, the programs installed."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.locales = locale_names(env)
        names = [name for name in env.get("XDG_CURRENT_DESKTOP", "").split(":") if name]
        self.desktops = names or ["XFCE"]
        self._path = [part for part in env.get("PATH", os.defpath).split(":") if os.path.isabs(part)]
        self._programs: dict[str, bool] = {}
        #: Well-formed key -> whether its value is kept. Unknown keys are added as they are met: the check is slow.
        self.keys: dict[bytes, bool] = {key.encode(): True for key in _KEYS}
        for locale in self.locales:
            for key in ("Name", "Icon"):
                self.keys[f"{key}[{locale}]".encode("utf-8", "surrogateescape")] = True

    def localized(self, values: Mapping[str, str], key: str) -> str:
        for locale in self.locales:
            # An empty translation is a missing one.
            if values.get(f"{key}[{locale}]"):
                return values[f"{key}[{locale}]"]
        return values.get(key, "")

    def shown(self, values: Mapping[str, str]) -> bool:
        """Desktop Entry Specification, OnlyShowIn and NotShowIn: the first of the desktop's names that is in either."""
        only, never = values.get("OnlyShowIn"), values.get("NotShowIn")
        if only is None and never is None:
            return True
        show, hide = _strings(only or ""), _strings(never or "")
        for name in self.desktops:
            if name in show:
                return True
            if name in hide:
                return False
        return only is None

    def installed(self, program: str, directory: str) -> bool:
        """Whether ``program`` (a ``TryExec``) is an executable file. With a slash but relative: below ``Path``."""
        if "/" in program:
            program = os.path.join(directory, program)
            return os.path.isabs(program) and _is_program(program)
        if program not in self._programs:
            self._programs[program] = any(_is_program(os.path.join(part, program)) for part in self._path)
        return self._programs[program]


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)


def _contents(path: str) -> bytes:
    try:
        # Looked at before it is opened: opening some devices does something. Opened without blocking all the same,
        # as the file may have become a FIFO in between.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise BrokenEntry("not a regular file")
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise BrokenEntry("not a regular file")
            data = b""
            while status.st_size <= MAX_BYTES and len(data) <= MAX_BYTES:
                more = os.read(descriptor, MAX_BYTES + 1)
                if not more:
                    return data
                data = data + more if data else more
            raise BrokenEntry("larger than 1 MiB")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise BrokenEntry(error.strerror or type(error).__name__) from None


def _is_key(key: bytes) -> bool:
    """``Key`` or ``Key[locale]``, as wide as GKeyFile takes it (spaces within, any other character)."""
    name, bracket, locale = key.partition(b"[")
    if not name or name.endswith(b" ") or b"]" in name:
        return False
    if not bracket:
        return True
    try:
        text = locale.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return text.endswith("]") and all(c.isalnum() or c in "-_.@" for c in text[:-1])


def _group(line: bytes) -> bytes | None:
    name, bracket, rest = line[1:].partition(b"]")
    if not bracket or rest.strip(b" \t") or not name or b"[" in name or min(name) < 32 or 127 in name:
        return None
    return name


def _main_group(data: bytes, keys: dict[bytes, bool]) -> dict[str, str]:
    """The kept keys of ``[Desktop Entry]``, still escaped; the last of two with one name. Values that are no
    UTF-8 are left out.

    Every line is checked, because GLib refuses the whole file for one bad line.
    """
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
        data = data[:-1] if data.endswith(b"\r") else data
    lines = data.split(b"\n")
    if b"\0" in data:
        lines = [line.partition(b"\0")[0] for line in lines]
    found: dict[bytes, bytes] = {}
    group: bytes | None = None
    inside = False
    for line in lines:
        key, equals, value = line.partition(b"=")
        kept = keys.get(key) if equals else None
        if kept is None:
            line = line.lstrip(_SPACE)
            if not line or line[0] == 35:  # "#"
                continue
            name = _group(line) if line[0] == 91 else None  # "["
            if name is not None:
                if group is None and name != b"Desktop Entry":
                    raise BrokenEntry("the first group is not [Desktop Entry]")
                group = name
                inside = name == b"Desktop Entry"
                continue
            key, equals, value = line.partition(b"=")
            key = key.rstrip(_SPACE)
            kept = keys.get(key)
            if kept is None:
                if not equals or not _is_key(key):
                    raise BrokenEntry("a line is neither a comment, a group nor a key with a value")
                kept = False
                if len(keys) < MAX_KEYS:
                    keys[key] = kept
        if inside:
            if kept:
                if key == b"Encoding" and value.lstrip(_SPACE).upper() != b"UTF-8":
                    raise BrokenEntry("its Encoding is not UTF-8")
                found[key] = value
        elif group is None:
            raise BrokenEntry("a key stands before the first group")
    if group is None:
        raise BrokenEntry("there is no [Desktop Entry] group")
    values: dict[str, str] = {}
    for key, value in found.items():
        try:
            values[key.decode("utf-8", "surrogateescape")] = value.lstrip(_SPACE).decode("utf-8")
        except UnicodeDecodeError:
            pass
    return values


def _can_start(values: Mapping[str, str]) -> bool:
    line = unescape(values.get("Exec", ""))
    return _is_true(values.get("DBusActivatable")) or _STARTABLE.fullmatch(line) is not None


def _read_entry(path: str, id: str, rules: _Rules) -> Entry:
    values = _main_group(_contents(path), rules.keys)
    name = unescape(rules.localized(values, "Name"))
    if values.get("Icon"):
        values["Icon"] = rules.localized(values, "Icon")
    launchable = False
    if unescape(values.get("Type", "")) == "Application" and not _is_true(values.get("Hidden")):
        if not name:
            raise BrokenEntry("it has no Name")
        program = unescape(values.get("TryExec", ""))
        launchable = not program or rules.installed(program, unescape(values.get("Path", "")))
        launchable = launchable and _can_start(values)
    listed = launchable and not _is_true(values.get("NoDisplay")) and rules.shown(values)
    return Entry(id, path, name, values, launchable, listed)


def read_entry(path: str, id: str, env: Mapping[str, str] | None = None) -> Entry:
    """Read one file. ``env`` (default: this process's) decides the locale, the desktop and what is installed.

    Raises:
        BrokenEntry: Not a regular file, not readable, over 1 MiB, or not a desktop entry.
    """
    try:
        return _read_entry(path, id, _Rules(os.environ if env is None else env))
    except BrokenEntry as error:
        raise BrokenEntry(f"desktop entry {_plain_path(path)} can not be used: {error}", path=path) from None


class Applications:
    """The applications an environment leads to, at one moment. Files are read when they are first needed.

    ``searched``: the directories. ``files``: desktop file id -> the file that has it. ``broken``: path and reason of
    what could not be read; complete once ``entries`` was asked for.
    """

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        env = os.environ if env is None else env
        self._rules = _Rules(env)
        self._entries: dict[str, Entry] | None = None
        self.searched = searched_directories(env)
        self.broken: list[tuple[str, str]] = []
        self.files: dict[str, str] = {}
        for directory in self.searched:
            for id, path in self._walk(directory):
                # Precedence comes before every filter: the first file has the id, be it hidden, broken or a device.
                self.files.setdefault(id, path)

    def _walk(self, top: str) -> Iterator[tuple[str, str]]:
        """Ids and paths below one directory, those nearest the top first, each directory's sorted by name."""
        waiting: list[tuple[str, str, tuple[tuple[int, int], ...]]] = [(top, "", ())]
        for walked, (directory, prefix, above) in enumerate(waiting):
            if walked >= MAX_DIRECTORIES:
                self.broken.append((top, f"more than {MAX_DIRECTORIES} directories: the rest is left out"))
                return
            try:
                status = os.stat(directory)
                here = (status.st_dev, status.st_ino)
                if here in above:
                    continue  # a link to a directory it stands in
                with os.scandir(directory) as entries:
                    names = sorted((item.name, item) for item in entries)
            except FileNotFoundError:
                continue
            except OSError as error:
                self.broken.append((directory, error.strerror or type(error).__name__))
                continue
            for name, item in names:
                if name.endswith(ENDING):
                    id = prefix + name[: -len(ENDING)]
                    if not id.isascii() and any("\ud800" <= c <= "\udfff" for c in id):
                        self.broken.append((item.path, "its file name is not UTF-8"))
                    elif id:
                        yield id, item.path
                    continue
                try:
                    if item.is_dir():
                        waiting.append((item.path, prefix + name + "-", (*above, here)))
                except OSError:
                    continue  # a link that loops

    def _read(self, id: str) -> Entry | None:
        try:
            return _read_entry(self.files[id], id, self._rules)
        except BrokenEntry as error:
            self.broken.append((self.files[id], str(error)))
            return None

    @property
    def entries(self) -> dict[str, Entry]:
        """Every entry that could be read, by id, the deleted and the hidden included."""
        if self._entries is None:
            read = ((id, self._read(id)) for id in self.files)
            self._entries = {id: entry for id, entry in read if entry is not None}
        return self._entries

    def listed(self) -> list[Entry]:
        """What the desktop's menu may show, sorted by case-folded name and then id."""
        return sorted((e for e in self.entries.values() if e.listed), key=lambda e: (e.name.casefold(), e.id))

    def find(self, name: str, unlisted: bool = False) -> Entry:
        """The one listed entry with this id, this id ignoring case, or this name ignoring case, in that order.

        ``unlisted`` adds what is hidden from the menu alone, by its exact id: for launching. In any case or by name it
        would take the name of an application that is listed. Nothing is guessed.

        Raises:
            InvalidName: It can not be a name.
            UnknownApplication, AmbiguousApplication: None, or several have it.
        """
        check_name(name)
        for id in (name, name[: -len(ENDING)] if name.endswith(ENDING) else name):
            # One file is read and not all: most launches are by id.
            if id in self.files:
                entry = self._entries.get(id) if self._entries is not None else self._read(id)
                if entry is not None and (entry.listed or (unlisted and entry.launchable)):
                    return entry
        folded = _fold(name)
        listed = self.listed()
        same = [entry for entry in listed if folded in (_fold(entry.id), _fold(entry.id + ENDING))]
        what = "the id"
        if not same:
            same = [entry for entry in listed if _fold(entry.name) == folded]
            what = "the name"
        if len(same) == 1:
            return same[0]
        if same:
            ids = sorted(entry.id for entry in same)
            number = _NUMBERS[len(ids)] if len(ids) < len(_NUMBERS) else str(len(ids))
            raise AmbiguousApplication(
                f"{_quoted(name)} is {what} of {number} applications: launch one by id: {', '.join(map(_plain, ids))}",
                ids,
            )
        near = _nearest(folded, listed)
        message = f"unknown application {_quoted(name)}: ask for the list of applications"
        if near:
            message += "; nearest are " + ", ".join(f"{_quoted(entry.name)} ({_plain(entry.id)})" for entry in near)
        raise UnknownApplication(message, [{"id": entry.id, "name": entry.name} for entry in near])


def _nearest(folded: str, entries: Iterable[Entry]) -> list[Entry]:
    """At most three whose name or id is more than half like ``folded``, the best first."""
    import difflib  # here because only a refusal needs it

    matcher = difflib.SequenceMatcher()
    matcher.set_seq2(folded)
    scores: list[tuple[float, Entry]] = []
    for entry in entries:
        best = 0.0
        for text in (_fold(entry.name[:MAX_NAME]), _fold(entry.id[:MAX_NAME])):
            matcher.set_seq1(text)
            if matcher.real_quick_ratio() > 0.5 and matcher.quick_ratio() > 0.5:
                best = max(best, matcher.ratio())
        if best > 0.5:
            scores.append((best, entry))
    scores.sort(key=lambda pair: -pair[0])
    return [entry for _, entry in scores[:3]]


def _fold(text: str) -> str:
    """For comparing without case (The Unicode Standard, 3.13, D145), composed."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def _plain(text: str, most: int = MAX_NAME) -> str:
    """``text`` for a sentence: no line break or control character, not endless."""
    text = text if len(text) <= most else text[: most - 3] + "..."
    odd = ("Cc", "Cs", "Zl", "Zp")
    return "".join(repr(c)[1:-1] if unicodedata.category(c) in odd else c for c in text)


def _quoted(text: str) -> str:
    return f"'{_plain(text, 60)}'"


def check_name(name: str) -> None:
    """Refuse what can not be a name: empty, over 255 characters, a path, or with a control character.

    Raises:
        InvalidName: Says why.
    """
    advice = "give an id or a name from the list of applications"
    if not isinstance(name, str):
        raise InvalidName(f"an application's name is text, not {type(name).__name__}: {advice}")
    if not name:
        raise InvalidName(f"the application's name is empty: {advice}")
    if len(name) > MAX_NAME:
        raise InvalidName(f"an application's name has at most {MAX_NAME} characters, not {len(name)}: {advice}")
    for character in name:
        if character in "/\\":
            raise InvalidName(f"{_quoted(name)} is no application's name, as it holds {character}: {advice}")
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise InvalidName(f"{_quoted(name)} is no application's name, as it holds a control character: {advice}")


def scan(env: Mapping[str, str] | None = None) -> Applications:
    """Read everything now: ``entries``, ``listed()``, ``searched`` and ``broken`` of the answer are complete."""
    applications = Applications(env)
    applications.entries  # noqa: B018
    return applications


def list_applications(env: Mapping[str, str] | None = None) -> list[Entry]:
    """The entries that ``env`` (default: this process's) makes a desktop show, sorted by name and id."""
    return Applications(env).listed()


def find(name: str, env: Mapping[str, str] | None = None, unlisted: bool = False) -> Entry:
    """The entry with this id or name; see ``Applications.find``. Launching passes ``unlisted=True``."""
    return Applications(env).find(name, unlisted)


_USAGE = "usage: applications.py list [--json] [--verbose] | find [--json] [--verbose] [--unlisted] [--] NAME"


def _report(applications: Applications) -> None:
    for directory in applications.searched:
        print(
            "searched", _plain_path(directory) + ("" if os.path.isdir(directory) else " (not there)"), file=sys.stderr
        )
    count = len(applications.broken)
    print(f"skipped {count} broken file{'' if count == 1 else 's'}", file=sys.stderr)
    for path, reason in applications.broken:
        print(f"  {_plain_path(path)}: {reason}", file=sys.stderr)


def _plain_path(path: str) -> str:
    return path if path.isprintable() else repr(path)


def _print(lines: Iterable[str]) -> None:
    # Bytes, because the locale's encoding may not have the names' characters.
    sys.stdout.buffer.write("".join(line + "\n" for line in lines).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _row(entry: Entry) -> str:
    return "\t".join((_plain_path(entry.id), _plain_path(entry.name), _plain_path(entry.path)))


def main(arguments: list[str]) -> int:
    """The command line. A name may look like an option: what is not one of the options is the name, and so is anything
    after ``--``. Exit status 0, or 2 when refused, with one line on standard error."""
    options = ("--json", "--verbose", "--unlisted")
    command, *rest = arguments or [""]
    before, names = (rest[: rest.index("--")], rest[rest.index("--") + 1 :]) if "--" in rest else (rest, [])
    chosen = [word for word in before if word in options]
    names = [word for word in before if word not in options] + names
    if command in ("-h", "--help"):
        print(_USAGE)
        return 0
    if command not in ("list", "find") or len(names) != (command == "find"):
        print(_USAGE, file=sys.stderr)
        return 2
    applications = Applications()
    try:
        found = applications.listed() if command == "list" else [applications.find(names[0], "--unlisted" in chosen)]
    except ApplicationError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if "--verbose" in chosen:
            _report(applications)
    if "--json" in chosen:
        shapes = [entry.as_dict() for entry in found]
        _print([json.dumps(shapes if command == "list" else shapes[0], ensure_ascii=False)])
    else:
        _print(_row(entry) for entry in found)
    return 0


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except BrokenPipeError:
        # Whoever read the listing has seen enough. The interpreter would complain when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 0
    sys.exit(status)
