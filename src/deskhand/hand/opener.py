"""What opens a desktop entry on a desktop: its own opener, the session bus, or the entry's own Exec line.

An opener takes the entry's path as its one argument: ``exo-open`` on XFCE, ``gio launch`` or ``dex`` on any other
desktop. A bare window manager has no desktop's opener, whatever is installed beside it, and there the Exec line is run.
A ``Terminal=true`` entry is always run by its Exec line, in a terminal that is there: ``exo-open`` and ``gio`` end
with 0 and no word when they find none. A ``DBusActivatable`` entry is activated on the session bus when its name can be
had there, which is asked first, because every opener ends with 0 when it can not.

Sources: Desktop Entry Specification, The Exec key, D-Bus Activation, Registered OnlyShowIn Environments.
"""

from __future__ import annotations

import os
import shutil
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from . import exec_line, launch_environment
from .applications import Entry
from .errors import ActionFailed, Unsupported, nothing_sent
from .launched_process import Account
from .x11 import Connection

#: Seconds the session bus may take to say which names it has.
_BUS_PATIENCE = 3.0

#: Terminals with what stands between them and the command, best first after the desktop's own. Those that hand the
#: command to a server of theirs are told not to, so that the command stays in the launch.
_TERMINALS: Dict[str, Tuple[str, ...]] = {
    "xfce4-terminal": ("--disable-server", "-x"),
    "xterm": ("-e",),
    "mate-terminal": ("--disable-factory", "-x"),
    "qterminal": ("-e",),
    "konsole": ("-e",),
    "uxterm": ("-e",),
    "urxvt": ("-e",),
    "rxvt": ("-e",),
    "kitty": (),
    "alacritty": ("-e",),
    "st": ("-e",),
    "tilix": ("-e",),
    "gnome-terminal": ("--wait", "--"),
    "ptyxis": ("-s", "--"),
    "kgx": ("--",),
    "xdg-terminal-exec": (),
    "x-terminal-emulator": ("-e",),
}
_OWN_TERMINAL = {
    "XFCE": "xfce4-terminal", "GNOME": "gnome-terminal", "UNITY": "gnome-terminal", "X-CINNAMON": "gnome-terminal",
    "MATE": "mate-terminal", "LXQT": "qterminal", "KDE": "konsole",
}  # fmt: skip
#: Window managers that are a desktop's own, for a display whose environment does not tell.
_DESKTOP_OF_MANAGER = {
    "xfwm4": "XFCE", "marco": "MATE", "metacity (marco)": "MATE", "gnome shell": "GNOME", "mutter": "GNOME",
    "kwin": "KDE", "mutter (muffin)": "X-CINNAMON", "muffin": "X-CINNAMON",
}  # fmt: skip
#: Names that some set XDG_CURRENT_DESKTOP to and that are window managers without a desktop.
_BARE = {
    "OPENBOX", "FLUXBOX", "BLACKBOX", "ICEWM", "JWM", "I3", "AWESOME", "BSPWM", "DWM", "XMONAD", "QTILE", "TWM", "FVWM",
    "HERBSTLUFTWM", "NONE",
}  # fmt: skip


class Opener(NamedTuple):
    """How an entry is opened. ``name`` is for people; ``argv`` is run without a shell, in ``directory``.

    ``direct`` says that the process is the application itself (or its terminal), and not one that starts it and ends.
    ``fallback`` is tried when this one fails at once. ``note`` says what was passed over, and why.
    """

    name: str
    argv: Tuple[str, ...]
    directory: str
    direct: bool
    note: Optional[str] = None
    fallback: Optional["Opener"] = None


def choose(
    entry: Entry, env: Mapping[str, str], window_manager: Optional[str] = None, account: Optional[Account] = None
) -> Opener:
    """How to open ``entry`` on a desktop with the environment ``env`` (see ``launch_environment``).

    ``account`` is whom to be when the session bus is asked.

    Raises:
        Unsupported: there is nothing to open it with; names what is missing.
        ActionFailed: its Exec line can not be run.
    """
    if entry.dbus_activatable:
        return _by_bus(entry, env, window_manager, account)
    return _without_bus(entry, env, window_manager)


def session_environment(conn: Connection, display: str, xauthority: Optional[str] = None) -> Dict[str, str]:
    """The environment that applications start with on ``display``; what is looked up for it is looked up with it."""
    return launch_environment.find(conn, display, xauthority).env


def describe(env: Mapping[str, str], window_manager: Optional[str] = None) -> str:
    """The name of the opener that this desktop's ordinary entries are opened with."""
    program = _program(env, window_manager)
    return program[0] if program is not None else "Exec line"


def desktop_names(env: Mapping[str, str], window_manager: Optional[str] = None) -> List[str]:
    """The names of the desktop, in upper case; none for a bare window manager, and where no window manager runs."""
    names = [name.upper() for name in env.get("XDG_CURRENT_DESKTOP", "").split(":") if name]
    if not names and window_manager is not None:
        own = _DESKTOP_OF_MANAGER.get(window_manager.casefold())
        names = [own] if own else []
    return [name for name in names if name not in _BARE]


def find_program(name: str, env: Mapping[str, str]) -> Optional[str]:
    """The path of a program in the PATH of ``env``; None when it is not there."""
    return shutil.which(name, path=env.get("PATH") or os.defpath)


# ---- an entry without the bus


def _without_bus(
    entry: Entry, env: Mapping[str, str], window_manager: Optional[str], note: Optional[str] = None
) -> Opener:
    if not entry.terminal:
        program = _program(env, window_manager)
        if program is not None:
            name, argv = program
            _check_program(entry, env)
            return Opener(name, (*argv, entry.path), env.get("HOME") or "/", False, note)
    return _by_exec_line(entry, env, window_manager, note)


def _program(env: Mapping[str, str], window_manager: Optional[str]) -> Optional[Tuple[str, Tuple[str, ...]]]:
    names = desktop_names(env, window_manager)
    if not names:
        return None
    programs = [("gio launch", "gio", ("launch",)), ("dex", "dex", ())]
    if "XFCE" in names:
        programs.insert(0, ("exo-open", "exo-open", ()))
    for name, program, arguments in programs:
        path = find_program(program, env)
        if path is not None:
            return name, (path, *arguments)
    return None


def _by_exec_line(
    entry: Entry, env: Mapping[str, str], window_manager: Optional[str], note: Optional[str] = None
) -> Opener:
    try:
        argv = exec_line.entry_arguments(entry)
    except exec_line.ExecLineError as error:
        raise nothing_sent(f"{entry.name} can not be launched: {error}") from None
    name = "Exec line"
    _check_program(entry, env)
    if entry.terminal:
        terminal, before = _terminal(entry, env, window_manager)
        argv = [*before, *argv]
        name = f"Exec line in {terminal}"
    directory = entry.path_key or env.get("HOME") or "/"
    if entry.path_key and not os.path.isdir(os.path.join("/", entry.path_key)):
        missing = f"its Path {entry.path_key} is no directory, so it runs in /"
        note = f"{note}; {missing}" if note else missing
    return Opener(name, tuple(argv), directory, True, note)


def _check_program(entry: Entry, env: Mapping[str, str]) -> None:
    """Refuse an entry whose program is not there: ``exo-open`` and ``gio`` end with 0 then, or show a dialog."""
    try:
        program = exec_line.entry_arguments(entry)[0]
    except exec_line.ExecLineError:
        return  # the opener may read it otherwise
    relative = "/" in program and not os.path.isabs(program)  # to Path, which is the application's affair
    if not relative and find_program(program, env) is None:
        raise nothing_sent(
            f"{entry.name} can not be launched: its program {program!r} is not there or not executable; install it"
        )


def _terminal(entry: Entry, env: Mapping[str, str], window_manager: Optional[str]) -> Tuple[str, List[str]]:
    """The terminal to use and its arguments up to the command."""
    own = [_OWN_TERMINAL[name] for name in desktop_names(env, window_manager) if name in _OWN_TERMINAL]
    for name in dict.fromkeys([*own, *_TERMINALS]):
        path = find_program(name, env)
        if path is not None:
            return name, [path, *_TERMINALS[name]]
    raise Unsupported(
        f"{entry.name} runs in a terminal and none is installed: install one of {', '.join(list(_TERMINALS)[:5])}"
    )


# ---- an entry on the bus


def _by_bus(entry: Entry, env: Mapping[str, str], window_manager: Optional[str], account: Optional[Account]) -> Opener:
    """Desktop Entry Specification, D-Bus Activation: org.freedesktop.Application.Activate at the name's own path."""
    program = find_program("gdbus", env)
    if program is None:
        note = "gdbus is not installed, so it was not activated on the session bus"
    elif not env.get("DBUS_SESSION_BUS_ADDRESS"):
        note = "the desktop has no session bus to activate it on"
    elif not _bus_has(program, entry.id, env, account):
        note = f"the session bus has no service {entry.id} to activate"
    else:
        path = "/" + entry.id.replace(".", "/").replace("-", "_")
        startup = env.get("DESKTOP_STARTUP_ID")
        platform = "{'desktop-startup-id': <'%s'>}" % startup.replace("'", "") if startup else "@a{sv} {}"
        argv = (
            program, "call", "--session", "--timeout", "10", "--dest", entry.id, "--object-path", path,
            "--method", "org.freedesktop.Application.Activate", platform,
        )  # fmt: skip
        fallback = None
        if entry.exec is not None:
            tried = "activating it on the session bus failed, so its Exec line was run"
            try:
                fallback = _by_exec_line(entry, env, window_manager, tried)
            except (ActionFailed, Unsupported):
                pass  # the bus is tried all the same; its own failure is what will be told
        return Opener("D-Bus activation", argv, env.get("HOME") or "/", False, None, fallback)
    if entry.exec is None:
        raise Unsupported(f"{entry.name} can only be activated on the session bus, and {note}")
    return _by_exec_line(entry, env, window_manager, note + ", and its Exec line was run")


def _bus_has(gdbus: str, name: str, env: Mapping[str, str], account: Optional[Account]) -> bool:
    """Whether the session bus has an owner of ``name``, or knows how to start one (D-Bus, Message Bus)."""
    import subprocess

    identity = {} if account is None else {
        "user": account.uid, "group": account.gid, "extra_groups": list(account.groups),
    }  # fmt: skip
    for method in ("ListActivatableNames", "ListNames"):
        argv = [gdbus, "call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/org/freedesktop/DBus"]
        argv += ["--method", f"org.freedesktop.DBus.{method}"]
        try:
            answer = subprocess.run(  # type: ignore[call-overload]
                argv, stdin=subprocess.DEVNULL, capture_output=True, env=dict(env), cwd="/", timeout=_BUS_PATIENCE,
                **identity,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return False
        if f"'{name}'" in answer.stdout.decode("utf-8", "replace"):
            return True
    return False
