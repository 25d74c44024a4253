"""The image in a container, with what deploy/computer/compose.yaml says it is run with: Docker's, podman's, bwrap's."""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import yaml  # type: ignore[import-untyped]

from tests.image.bubblewrap import run_root

ROOT = Path(__file__).parents[2]
PORT = 8765
TOKEN = "/run/secrets/deskhand_token"
#: A machine in a container itself may neither raise limits nor talk to systemd, and crun wants cgroups of one kind.
_PODMAN = """
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""


class Container(Protocol):
    """One that runs."""

    #: Of its init, as this machine counts.
    pid: int

    def command(self, user: str, *words: str) -> list[str]:
        """The command that runs another one inside, as an account there; standard input is passed on."""

    def log(self) -> str:
        """All that it wrote."""

    def wait(self, timeout: float) -> int:
        """Wait until it ended; its exit status."""

    def end(self, signal: str) -> None:
        """Send a signal to its init."""


class EngineContainer:
    """One of Docker's or podman's."""

    def __init__(self, engine: str, name: str) -> None:
        self.engine = engine
        self.name = name
        self.pid = 0

    def command(self, user: str, *words: str) -> list[str]:
        return [self.engine, "exec", "--interactive", "--user", user, self.name, *words]

    def log(self) -> str:
        done = self.call("logs", self.name, check=False)
        return done.stdout + done.stderr

    def wait(self, timeout: float) -> int:
        return int(self.call("wait", self.name, timeout=timeout).stdout.strip())

    def end(self, signal: str) -> None:
        self.call("kill", "--signal", signal, self.name)

    def call(self, *words: str, timeout: float = 120.0, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command of the engine."""
        done = subprocess.run([self.engine, *words], capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"{self.engine} {' '.join(words)}: status {done.returncode}: {done.stderr.strip()}")
        return done

    def look(self) -> None:
        """Take in the pid of its init, which is another one when it was started again."""
        self.pid = int(self.call("inspect", "--format", "{{.State.Pid}}", self.name).stdout)


@functools.cache
def find_engine() -> str:
    """Docker where its engine answers; podman where it can run something; else bwrap. DESKHAND_ENGINE chooses."""
    chosen = os.environ.get("DESKHAND_ENGINE")
    if chosen:
        return chosen
    for engine in ("docker", "podman"):
        if shutil.which(engine):
            with settings():
                words = ["info"] if engine == "docker" else ["run", "--rm", "--network", "none", "--entrypoint", "true"]
                words += [] if engine == "docker" else [os.environ["DESKHAND_IMAGE"]]
                if subprocess.run([engine, *words], capture_output=True, timeout=120).returncode == 0:
                    return engine
    return "bwrap"


@contextmanager
def settings() -> Iterator[None]:
    """Podman's settings, for as long as the block lasts."""
    with tempfile.NamedTemporaryFile("w", prefix="deskhand-containers-", suffix=".conf") as file:
        file.write(_PODMAN)
        file.flush()
        before = os.environ.get("CONTAINERS_CONF")
        os.environ["CONTAINERS_CONF"] = file.name
        try:
            yield
        finally:
            os.environ.pop("CONTAINERS_CONF")
            if before is not None:
                os.environ["CONTAINERS_CONF"] = before


@contextmanager
def container(
    engine: str,
    *,
    read_only: bool,
    modes: str,
    token: str,
    volumes: Sequence[tuple[Path, str]],
    environment: Mapping[str, str],
    command: Sequence[str],
) -> Iterator[Container]:
    """Run the image; nothing is left of it when the block is left. ``command`` stands in for the entrypoint."""
    service = yaml.safe_load((ROOT / "deploy/computer/compose.yaml").read_text())["services"]["computer"]
    assert service["read_only"]
    environment = {**service["environment"], **environment}
    with tempfile.TemporaryDirectory(prefix="deskhand-image-") as directory:
        mounts = [(str(here), place) for here, place in volumes]
        if token:
            file = Path(directory) / "token"
            file.touch(0o600)
            file.write_text(token + "\n")
            mounts.append((str(file), TOKEN))
        if engine == "bwrap":
            tmpfs = [_place_and_mode(mount, modes) for mount in service["tmpfs"]]
            words = ["/usr/bin/tini", "--", *command] if command else []
            image, place = os.environ["DESKHAND_IMAGE"], Path(directory)
            rights = service["cap_add"]
            with run_root(image, place, rights, tmpfs, read_only, mounts, environment, words) as root:
                yield root
            return
        with _engine_container(engine, service, read_only, modes, mounts, environment, command) as running:
            yield running


@contextmanager
def _engine_container(
    engine: str,
    service: Any,
    read_only: bool,
    modes: str,
    mounts: Sequence[tuple[str, str]],
    environment: Mapping[str, str],
    command: Sequence[str],
) -> Iterator[EngineContainer]:
    running = EngineContainer(engine, f"deskhand-check-{secrets.token_hex(4)}")
    words = ["run", "--detach", "--name", running.name, "--shm-size", service["shm_size"]]
    words += ["--pids-limit", str(service["pids_limit"])]
    for option, key in (("--cap-drop", "cap_drop"), ("--cap-add", "cap_add"), ("--security-opt", "security_opt")):
        for value in service[key]:
            words += [option, value.removesuffix(":true")]
    if read_only:
        words.append("--read-only")
        for mount in service["tmpfs"]:
            words += ["--tmpfs", "{}:mode={}".format(*_place_and_mode(mount, modes))]
    for here, place in mounts:
        words += ["--volume", f"{here}:{place}:ro"]
    for variable, value in environment.items():
        words += ["--env", f"{variable}={value}"]
    words += ["--publish", f"127.0.0.1::{PORT}"] if engine == "docker" else ["--network", "none"]
    words += ["--entrypoint", "/usr/bin/tini"] if command else []
    with settings():
        try:
            running.call(*words, os.environ["DESKHAND_IMAGE"], *(["--", *command] if command else []))
            running.look()
            yield running
        finally:
            running.call("rm", "--force", "--volumes", running.name, check=False)


def _place_and_mode(mount: str, modes: str) -> tuple[str, str]:
    place, _, mode = mount.partition(":mode=")
    return place, modes or mode
