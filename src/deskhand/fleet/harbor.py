"""A Harbor environment whose desktop is leased from a pool: ``harbor run --env deskhand.fleet.harbor:PoolEnvironment``.

A trial takes a warm desktop, and gives it back to be ended: the next one gets a new one. Nothing is built; programs are
those of the machine that the desktop is on. The task's ``environment/begin.sh``, where there is one, is run on the
desktop before the agent begins.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from harbor.environments.capabilities import EnvironmentCapabilities

from deskhand.errors import DeskhandError, SetupError
from deskhand.fleet.commands import CommandTimeout, Ran
from deskhand.fleet.named import Named
from deskhand.fleet.pool import LeasedDesktop
from deskhand.harbor.environment import OwnEnvironment, pack, unpack

#: Seconds that one transfer may take, that ``begin.sh`` may take, and a command for which Harbor sets no end.
_TRANSFER, _BEGIN, _ENDLESS = 120.0, 300.0, 86400.0
#: Bytes that one command of a transfer carries.
_PIECE = 4 << 20
_ENVIRONMENT = "/environment"
_LOG = "/var/tmp/begin.log"


class PoolEnvironment(OwnEnvironment):
    """One trial's desktop, leased from a pool.

    Args:
        pool: The fleet of that name on this machine (``deskhand fleet up --isolation bwrap``); with ``ray``, there.
        ray: The address of a Ray cluster with that fleet.
        addresses: A list of computerd's addresses, or a JSON file with it; see ``deskhand.fleet.named``. Each needs a
            ``shell``.
        ttl: Seconds that a desktop stays taken when this process has died.
        wait: Seconds to queue for a desktop. Harbor's own limit for starting an environment counts too.

    Whatever else is given makes a pool of this process's own: ``size``, ``spares``, ``session``, ``screen`` and the
    other ``deskhand.fleet.Options``.

    Raises:
        SetupError: The settings do not go together.
    """

    late = CommandTimeout

    def __init__(
        self,
        *given: Any,
        pool: str | None = None,
        ray: str | None = None,
        addresses: Any = None,
        ttl: float = 60.0,
        wait: float = _ENDLESS,
        size: int | None = None,
        spares: int | None = None,
        session: str | None = None,
        screen: str | None = None,
        isolation: str | None = None,
        home: str | None = None,
        template_home: str | None = None,
        home_size: int | None = None,
        see: Any = None,
        **named: Any,
    ) -> None:
        own = {"size": size, "spares": spares, "session": session, "screen": screen, "isolation": isolation}
        own |= {"home": home, "template_home": template_home, "home_size": home_size, "see": see}
        self._named = Named.of(pool, ray, addresses, **own)
        self._ttl, self._wait = float(ttl), float(wait)
        self._desktop: LeasedDesktop | None = None
        super().__init__(*given, **named)

    @staticmethod
    def type() -> str:
        return "deskhand-pool"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        # That the desktop has none is looked at when it is there.
        return EnvironmentCapabilities(disable_internet=not self._named.addresses)

    @property
    def desktop(self) -> LeasedDesktop:
        """The leased desktop, once it has begun: a backend."""
        if self._desktop is None:
            raise RuntimeError("this environment has no desktop: it has not been started, or has been stopped")
        return self._desktop

    async def start(self, force_build: bool) -> None:
        """Lease a desktop, make Harbor's directories on it, and run the task's ``begin.sh``.

        Raises:
            SetupError: There is none to be had, or it is not fit for a trial; says why.
        """
        pool = await self._named.open()
        self._desktop = pool.lease(self._ttl, self._wait, f"harbor:{self.session_id}"[:200])
        try:
            await self._desktop.__aenter__()
            await self._prepare()
        except BaseException:
            await self.stop(delete=True)
            raise

    async def stop(self, delete: bool) -> None:
        """Give the desktop back. It is ended with everything on it, whatever ``delete`` is."""
        desktop, self._desktop = self._desktop, None
        if desktop is not None:
            await desktop.aclose()

    async def _run(
        self, command: str, env: Mapping[str, str], cwd: str | None, timeout: int | None, user: str | int | None
    ) -> Ran:
        """As the desktop's account, which is what ``root`` means here too."""
        if user not in (None, "root", 0, "0"):
            raise RuntimeError(f"a desktop of a pool has one user: it can run nothing as {user!r}")
        shell = f"exec bash -c {shlex.quote(command)}"
        return await self.desktop.run(shell, env=env, cwd=cwd, timeout=float(timeout or _ENDLESS))

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        with open(source_path, "rb") as source:
            await self._send(source, target_path)
        await self._checked(f"chmod {os.stat(source_path).st_mode & 0o777:o} {shlex.quote(target_path)}")

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        with tempfile.TemporaryFile() as content:
            pack(source_dir, content)
            sent = f"/var/tmp/upload-{os.urandom(6).hex()}.tar"
            await self._send(content, sent)
            into = shlex.quote(target_dir)
            await self._checked(
                f"mkdir -p {into} && tar -xf {sent} --no-same-owner -C {into}; e=$?; rm {sent}; exit $e"
            )

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile() as content:
            await self._fetch(source_path, content)
            content.seek(0)
            Path(target_path).write_bytes(content.read())

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        packed = f"/var/tmp/download-{os.urandom(6).hex()}.tar"
        await self._checked(f"tar -cf {packed} -C {shlex.quote(source_dir)} .")
        with tempfile.TemporaryFile() as content:
            await self._fetch(packed, content)
            await self._checked(f"rm {packed}")
            unpack(content, target_dir)

    # -- how

    async def _prepare(self) -> None:
        _, directories = self._directories()
        ran = await self.desktop.run(f"rm -rf /logs /tests /solution {_ENVIRONMENT}; mkdir -p {directories}")
        if ran.code != 0:
            raise SetupError(
                "the desktops of this pool have no file system of their own for a trial's directories"
                f" ({_last(ran)}): start the fleet with: deskhand fleet up --isolation bwrap"
            )
        await self._check_network()
        begin = Path(self.environment_dir) / "begin.sh"
        if begin.is_file():
            await self.upload_dir(self.environment_dir, _ENVIRONMENT)
            ran = await self.desktop.run(f"bash {_ENVIRONMENT}/begin.sh > {_LOG} 2>&1 < /dev/null", timeout=_BEGIN)
            if ran.code != 0:
                said = (await self.desktop.run(f"tail -n 1 {_LOG}")).stdout.decode("utf-8", "replace").strip()
                raise SetupError(f"the task's begin.sh failed: {said[:300] or f'exit status {ran.code}'}")

    async def _check_network(self) -> None:
        """A trial that is to have no network gets none (proc(5), /proc/net/dev: a line each interface)."""
        if not getattr(self, "_network_disabled", False):
            return
        ran = await self.desktop.run("awk 'NR > 2 && $1 !~ /^lo:/' /proc/net/dev")
        if ran.code != 0 or ran.stdout.strip():
            raise SetupError(
                "the task allows no network, and the desktops of this pool have one: start the fleet with:"
                " deskhand fleet up --isolation bwrap"
            )

    async def _send(self, source: IO[bytes], target: str) -> None:
        place, directory = shlex.quote(target), shlex.quote(target.rpartition("/")[0] or "/")
        await self._checked(f"mkdir -p {directory} && : > {place}")
        while piece := source.read(_PIECE):
            await self._checked(f"cat >> {place}", piece)

    async def _fetch(self, source: str, target: IO[bytes]) -> None:
        at, place = 0, shlex.quote(source)
        await self._checked(f"test -f {place} || {{ echo {place} is not there >&2; exit 1; }}")
        while piece := (await self._checked(f"tail -c +{at + 1} {place} | head -c {_PIECE}")).stdout:
            at += target.write(piece)

    async def _checked(self, command: str, stdin: bytes = b"") -> Ran:
        """Raises RuntimeError unless the command succeeds."""
        try:
            ran = await self.desktop.run(command, stdin, timeout=_TRANSFER)
        except DeskhandError as error:
            raise RuntimeError(f"the desktop: {error}") from error
        if ran.code != 0:
            raise RuntimeError(f"the desktop: {_last(ran)}")
        return ran


def _last(ran: Ran) -> str:
    return ran.stderr.decode("utf-8", "replace").strip()[-300:] or f"exit status {ran.code}"
