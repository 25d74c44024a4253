"""Ways to run a command where the desktop is: each turns a command there into one here."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from deskhand.backends.places import LONGEST_LINE, Place, Process


@dataclass(frozen=True)
class Transport(Place):
    """A command prefix. ``quoted``: the far side gives what it gets to a shell, so it is sent as one quoted word.

    ``display`` and everything else about the desktop is the hand's business over there, not the transport's.
    """

    name: str
    prefix: tuple[str, ...] = ()
    quoted: bool = False

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command to start here so that ``argv`` runs there, with standard input and output connected."""
        return [*self.prefix, shlex.join(argv)] if self.quoted else [*self.prefix, *argv]

    async def start(self, argv: Sequence[str], stream: bool = False) -> Process:
        pipe = asyncio.subprocess.PIPE
        # A session of its own: Ctrl-C is for us, and we tell the hand.
        return await asyncio.create_subprocess_exec(
            *self.command(argv), stdin=pipe, stdout=pipe, stderr=pipe, limit=LONGEST_LINE, start_new_session=True
        )


def subprocess() -> Transport:
    """This machine, in a process of its own."""
    return Transport("subprocess")


def docker(container: str, user: str | None = None) -> Transport:
    """``docker exec`` into a running container, as ``user`` when given."""
    return Transport(f"docker:{container}", _exec("docker", container, user))


def podman(container: str, user: str | None = None) -> Transport:
    """``podman exec`` into a running container, as ``user`` when given."""
    return Transport(f"podman:{container}", _exec("podman", container, user))


def kubectl(pod: str, namespace: str | None = None, container: str | None = None) -> Transport:
    """``kubectl exec`` into a pod."""
    place = [*(["--namespace", namespace] if namespace else []), *(["--container", container] if container else [])]
    return Transport(f"kubectl:{pod}", ("kubectl", "exec", "--stdin", *place, _checked(pod), "--"))


def ssh(host: str, options: Sequence[str] = ()) -> Transport:
    """``ssh`` without a terminal and without asking anything; ``options`` go before the host (``["-p", "2222"]``)."""
    return Transport(f"ssh:{host}", ("ssh", "-T", "-o", "BatchMode=yes", *options, "--", _checked(host)), quoted=True)


def bubblewrap(arguments: Sequence[str]) -> Transport:
    """``bwrap`` with these arguments, which must let the display's socket in (``--bind /tmp/.X11-unix ...``)."""
    return Transport("bubblewrap", ("bwrap", *arguments))


def _exec(engine: str, container: str, user: str | None) -> tuple[str, ...]:
    return (engine, "exec", "--interactive", *(("--user", user) if user else ()), _checked(container))


def _checked(name: str) -> str:
    """A name that can not be taken for an option."""
    if not name or name.startswith("-"):
        raise ValueError(f"{name!r} is no name of a host or container")
    return name
