r"""From an entry's ``Exec`` line to the arguments of its program (Desktop Entry Specification 1.5, The Exec key).

String escapes are decoded, then the quoting is taken off, then field codes are replaced; each once, so that nothing a
step inserts (a name, a path) is read again by a later one. There is no shell: ``$HOME``, ``~``, ``>`` and ``&`` are
text.

What the specification leaves undefined goes as in GLib (g_shell_parse_argv, g_app_info_launch): single quotes quote, a
backslash outside quotes takes the next character as it is, ``#`` at the start of an argument ends the line. A field
code within quotes, undefined too, is replaced as it is outside them, where GLib inserts quotes of its own: for it
``"%c"`` is the argument ``'My App'``, quotes included, and ``'%c'`` is two arguments; here both are ``My App``. And a
code the specification does not know is refused, as it says, where GLib drops it.
"""

from __future__ import annotations

import re

from .applications import Entry, unescape

_CODE = re.compile(r"%(.?)", re.DOTALL)
#: Empty: the files to open, of which a launch has none, and the codes that the specification deprecates.
_EMPTY = "fFuU" + "dDnNvm"
#: Characters of a line, and of all that comes of it. Linux takes no longer argument (MAX_ARG_STRLEN, execve(2)).
_MAX_LENGTH = 131072


class ExecLineError(Exception):
    """An ``Exec`` line that can not be run. One line: what is wrong, and the line."""

    def __init__(self, reason: str, value: str) -> None:
        shown = value if len(value) <= 120 else value[:117] + "..."
        super().__init__(f"the Exec line can not be run: {reason}: {shown!r}")
        self.reason = reason


def parse_exec(value: str, *, name: str = "", path: str = "", icon: str | None = None) -> list[str]:
    """The arguments of ``value``, an ``Exec`` line as it stands in the file, the program first.

    ``name`` is the entry's name in the locale (``%c``), ``path`` its file (``%k``), ``icon`` its ``Icon`` (``%i``: the
    two arguments ``--icon`` and ``icon``, or none without an icon). ``%f %F %u %U`` are empty: nothing is opened.

    Raises:
        ExecLineError: A quotation is not closed, a field code is unknown, or there is no program.

    >>> parse_exec('edit "two words" --open=%f 100%% %F %i', icon="editor")
    ['edit', 'two words', '--open=', '100%', '--icon', 'editor']
    """
    if len(value) > _MAX_LENGTH:
        raise ExecLineError(f"it is longer than {_MAX_LENGTH} characters", value)
    try:
        arguments = split_quoted(unescape(value))
    except ValueError as error:
        raise ExecLineError(str(error), value) from None
    codes = {"c": name, "k": path, "%": "%", **dict.fromkeys(_EMPTY, "")}
    result: list[str] = []
    length = 0
    for text, quoted in arguments:
        words: list[list[str]] = [[]]
        for number, piece in enumerate(_CODE.split(text)):
            if number % 2 == 0 or piece in codes:
                words[-1].append(codes[piece] if number % 2 else piece)
                length += len(words[-1][-1])
                if length > _MAX_LENGTH:
                    raise ExecLineError(f"its arguments are longer than {_MAX_LENGTH} characters", value)
            elif piece != "i":
                what = f"%{piece} is no field code" if piece else "a single % ends an argument"
                raise ExecLineError(f"{what} (a percent sign is written %%)", value)
            elif icon:
                words[-1].append("--icon")
                words.append([icon])
        found = ["".join(word) for word in words]
        # `%f` alone is no argument at all; `"%f"` is an empty one.
        if quoted or found != [""]:
            result += found
    if not result or not result[0]:
        raise ExecLineError("it names no program", value)
    if any("\0" in argument for argument in result):
        raise ExecLineError("it holds a NUL character", value)
    return result


def entry_arguments(entry: Entry) -> list[str]:
    """The arguments that start ``entry``.

    Raises:
        ExecLineError: It has no ``Exec`` line (only ``DBusActivatable``), or one that can not be run.
    """
    if entry.exec is None:
        raise ExecLineError(f"{entry.id} has none", entry.path)
    return parse_exec(entry.exec, name=entry.name, path=entry.path, icon=entry.icon)


def split_quoted(line: str) -> list[tuple[str, bool]]:
    """Take the quoting off a line whose string escapes are decoded: each argument, and whether any of it was quoted.

    Raises:
        ValueError: A quotation is not closed, or the line ends in a backslash.

    >>> split_quoted('sh -c "echo \\\\"$1\\\\"" --a="b c" ""')
    [('sh', False), ('-c', False), ('echo "$1"', True), ('--a=b c', True), ('', True)]
    """
    arguments: list[tuple[str, bool]] = []
    text: list[str] | None = None  # the argument being read
    quoted = False
    position = 0
    while position < len(line):
        character = line[position]
        position += 1
        if character in " \t\n":
            if text is not None:
                arguments.append(("".join(text), quoted))
            text, quoted = None, False
            continue
        if character == "#" and text is None:
            newline = line.find("\n", position)
            position = len(line) if newline < 0 else newline
            continue
        if character == "\\":
            if position == len(line):
                raise ValueError("it ends in a backslash that escapes nothing")
            character = line[position]
            position += 1
            if character == "\n":
                continue  # a backslash takes a line break away with it
        elif character in "\"'":
            character, position = _quotation(line, position)
            quoted = True
        if text is None:
            text = []
        text.append(character)
    if text is not None:
        arguments.append(("".join(text), quoted))
    return arguments


def _quotation(line: str, position: int) -> tuple[str, int]:
    """The text of the quotation whose opening quote is before ``position``, and the position after its end."""
    quote = line[position - 1]
    text: list[str] = []
    while position < len(line):
        character = line[position]
        position += 1
        if character == quote:
            return "".join(text), position
        if character == "\\" and quote == '"' and line[position : position + 1] in tuple('"`$\\\n'):
            # Only these five are escaped; before any other character a backslash is itself.
            character = line[position]
            position += 1
        text.append(character)
    raise ValueError(f"a quotation opened with {quote} is not closed")
