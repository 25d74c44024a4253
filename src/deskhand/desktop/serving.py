"""How a desktop on this machine is to be served: as whom, at which address, with which Python."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys

from ..hand.errors import SetupError
from .account import Account, service_account
from .services import Serving

#: What must be there for computerd to start.
_NEEDED = ("fastapi", "uvicorn")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LOOK = "import sys; from importlib.util import find_spec; sys.exit(not all(map(find_spec, sys.argv[1:])))"


class NotServable(SetupError):
    """computerd can not be started here: it is not installed, or not where its account may read it."""


def serving(listen: str, directory: str, desktop: Account) -> Serving:
    """How the desktop of the account ``desktop`` is served at ``listen`` (HOST:PORT; port 0: a free one).

    Raises:
        SetupError: The address is none.
        NotServable: computerd is not installed, or the accounts can not run it.
    """
    check_installed()
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise SetupError(f"{listen!r} is no address to listen at: give HOST:PORT, like 127.0.0.1:8765")
    account = service_account()
    python, path = _python_for([desktop, account])
    return Serving(
        listen=_free_address(host) if int(port) == 0 else listen,
        account=account,
        launcher_directory=os.path.join(directory, "launcher"),
        directory=os.path.join(directory, "computerd"),
        python=python,
        python_path=path,
    )


def check_installed() -> None:
    """That computerd can be started.

    Raises:
        NotServable: Its extra is not installed.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise NotServable(f"computerd needs {' and '.join(missing)}: pip install 'deskhand[computerd]'")


def _free_address(host: str) -> str:
    """HOST:PORT with a port that nobody listens on now. It is held by none, so that computerd can take it again."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        try:
            probe.bind((host.strip("[]"), 0))
        except OSError as error:
            raise SetupError(f"{host} can not be listened at: {error.strerror or error}") from None
        return f"{host}:{probe.getsockname()[1]}"


def _python_for(accounts: list[Account]) -> tuple[str, str]:
    """An interpreter and its PYTHONPATH with which every one of ``accounts`` can run us.

    Ours, where they can; else the system's of the same version with our packages: root's own Python often lies below
    /root, where nobody else may go.
    """
    specs = [importlib.util.find_spec(name) for name in _NEEDED]
    origins = [os.path.dirname(os.path.dirname(spec.origin)) for spec in specs if spec is not None and spec.origin]
    path = os.pathsep.join(dict.fromkeys([_PACKAGE, *origins]))
    for python in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        if all(_can_run(account, python, path) for account in accounts):
            return python, path
    names = " and ".join(dict.fromkeys(account.name for account in accounts))
    raise NotServable(
        f"{names} can not run {sys.executable} with {_PACKAGE}: install deskhand with a Python, and in a "
        "place, that they can read (python3 -m venv /opt/deskhand)"
    )


def _can_run(account: Account, python: str, path: str) -> bool:
    try:
        done = subprocess.run(
            [python, "-P", "-c", _LOOK, "deskhand", *_NEEDED],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            user=account.uid if account.switch else None,
            group=account.gid if account.switch else None,
            extra_groups=[account.gid] if account.switch else None,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
