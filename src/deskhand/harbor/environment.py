"""What Harbor's environments of ours share: those for which Harbor builds nothing, and whose commands we run."""

from __future__ import annotations

import shlex
import tarfile
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import IO, ClassVar

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.trial.paths import EnvironmentPaths

from deskhand.errors import DeskhandError


class OwnEnvironment(BaseEnvironment):  # type: ignore[misc]
    """One trial's desktop, as Harbor takes it."""

    #: The error of a command that has taken too long.
    late: ClassVar[type[Exception]]

    def _validate_definition(self) -> None:
        """There is nothing that a task's environment must hold."""

    @abstractmethod
    async def _run(
        self, command: str, env: Mapping[str, str], cwd: str | None, timeout: int | None, user: str | int | None
    ) -> tuple[int, bytes, bytes]:
        """Run a command of bash(1); its exit status, and what it has written.

        Raises:
            DeskhandError: It can not be run.
            Exception: It took too long, which is ``late``.
        """

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a shell command there.

        Raises:
            RuntimeError: It took too long, or can not be run there; says why.
        """
        where, as_whom = cwd or self.task_env_config.workdir, self._resolve_user(user)
        try:
            code, out, errors = await self._run(command, self._merge_env(env) or {}, where, timeout_sec, as_whom)
        except self.late as error:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from error
        except DeskhandError as error:
            raise RuntimeError(str(error)) from error
        said = {"stdout": out.decode("utf-8", "replace"), "stderr": errors.decode("utf-8", "replace")}
        return ExecResult(**said, return_code=code)

    def _directories(self) -> tuple[str, str]:
        """Harbor's directories, and these with the task's working directory: words for a shell."""
        paths = EnvironmentPaths()
        harbors = [str(path) for path in (paths.agent_dir, paths.verifier_dir, paths.artifacts_dir)]
        workdir = self.task_env_config.workdir
        return shlex.join(harbors), shlex.join([*harbors, *([str(workdir)] if workdir else [])])


def pack(directory: Path | str, archive: IO[bytes]) -> None:
    """Write a directory's files into an archive of tar(1), and go back to its beginning."""
    with tarfile.open(fileobj=archive, mode="w") as packed:
        packed.add(directory, arcname=".")
    archive.seek(0)


def unpack(archive: IO[bytes], directory: Path | str) -> None:
    """Write what the desktop has packed into a directory of ours."""
    archive.seek(0)
    with tarfile.open(fileobj=archive) as packed:
        packed.extractall(directory, filter=_only_files)


def _only_files(member: tarfile.TarInfo, place: str) -> tarfile.TarInfo | None:
    """What the desktop holds is not trusted: no devices, and nothing that points or reaches outside."""
    if member.isdev():
        return None
    try:
        return tarfile.data_filter(member, place)
    except tarfile.FilterError:
        return None
