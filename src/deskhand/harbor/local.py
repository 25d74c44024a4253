"""A Harbor environment without Docker: ``harbor run --env deskhand.harbor.local:BubblewrapEnvironment``.

The task's ``environment/entrypoint.sh``, where there is one, is the sandbox's first process and starts the desktop; its
``Dockerfile`` is not looked at. Programs are this machine's, or those of ``--ek image=DIRECTORY``. There is no network
unless ``--ek share_network=true``. A task that names another user than root needs us to be root.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from harbor.environments.capabilities import EnvironmentCapabilities

from deskhand.errors import SetupError
from deskhand.harbor.bubblewrap import BubblewrapSandbox, CommandTimeout, Ended
from deskhand.harbor.environment import OwnEnvironment, pack, unpack

_ENTRY = "/entrypoint.sh"
#: Seconds a transfer may take.
_TRANSFER = 600


class BubblewrapEnvironment(OwnEnvironment):
    """One trial's sandbox: see ``BubblewrapSandbox``."""

    late = CommandTimeout

    def __init__(self, *given: Any, image: str = "/", share_network: bool = False, **named: Any) -> None:
        self._sandbox = BubblewrapSandbox(image, share_network)
        self._network_shared = share_network
        super().__init__(*given, **named)

    @staticmethod
    def type() -> str:
        return "bubblewrap"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=not self._network_shared)

    @property
    def sandbox(self) -> BubblewrapSandbox:
        """What is under it."""
        return self._sandbox

    async def start(self, force_build: bool) -> None:
        """Make the sandbox and start the task's entry point in it; nothing is built.

        Raises:
            SetupError: It can not be made here; says why.
        """
        entry = self.environment_dir / "entrypoint.sh"
        # The entry point waits for its file: it can only be put there once the sandbox is.
        wait = f"while [ ! -e {_ENTRY} ]; do sleep 0.05; done; exec bash {_ENTRY} > /var/log/entrypoint.log 2>&1"
        command = ("bash", "-c", wait) if entry.is_file() else ("sleep", "infinity")
        env = self._startup_environment()
        await self._sandbox.start(command, env)
        harbors, made = self._directories()
        await self._checked(f"mkdir -p {made} && chmod 777 {harbors}")
        if self.environment_dir.is_dir() and entry.is_file():
            await self._upload_tree(self.environment_dir, "/environment")
            await self._checked(f"cp /environment/entrypoint.sh {_ENTRY}.part && mv {_ENTRY}.part {_ENTRY}")

    async def stop(self, delete: bool) -> None:
        """End everything in it and remove its files, whatever ``delete`` is: nothing could enter them again."""
        await self._sandbox.stop()

    async def _run(
        self, command: str, env: Mapping[str, str], cwd: str | None, timeout: int | None, user: str | int | None
    ) -> tuple[int, bytes, bytes]:
        shell = ["bash", "-c", command]
        return await self._sandbox.run(shell, env=env, user=user, cwd=cwd or "/", timeout=timeout)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        mode = f"{os.stat(source_path).st_mode & 0o777:o}"
        target, directory = shlex.quote(target_path), shlex.quote(target_path.rpartition("/")[0] or "/")
        with open(source_path, "rb") as source:
            await self._checked(f"mkdir -p {directory} && cat > {target} && chmod {mode} {target}", stdin=source)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self._upload_tree(Path(source_dir), target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile() as content:
            await self._checked(f"cat {shlex.quote(source_path)}", stdout=content)
            content.seek(0)
            Path(target_path).write_bytes(content.read())

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile() as content:
            await self._checked(f"tar -cf - -C {shlex.quote(source_dir)} .", stdout=content)
            unpack(content, target_dir)

    async def _upload_tree(self, source: Path, target: str) -> None:
        with tempfile.TemporaryFile() as content:
            pack(source, content)
            into = shlex.quote(target)
            await self._checked(f"mkdir -p {into} && tar -xf - --no-same-owner -C {into}", stdin=content)

    async def _checked(self, command: str, stdin: IO[bytes] | None = None, stdout: IO[bytes] | None = None) -> Ended:
        """Raises RuntimeError unless the command succeeds."""
        try:
            ended = await self._sandbox.run(["bash", "-c", command], stdin=stdin, stdout=stdout, timeout=_TRANSFER)
        except (CommandTimeout, SetupError) as error:
            raise RuntimeError(f"the sandbox: {error}") from error
        if ended.code != 0:
            said = ended.stderr.decode("utf-8", "replace").strip()[-300:]
            raise RuntimeError(f"the sandbox: {said or f'exit status {ended.code}'}")
        return ended

    def _startup_environment(self) -> dict[str, str]:
        merged: dict[str, str] | None = self._merge_env(None)
        return dict(merged or {})
