"""Connect this process to a Ray cluster, or say why it can not be."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator

import ray
from ray.exceptions import AuthenticationError, RayError

from deskhand.errors import NoDisplay, SetupError
from deskhand.fleet.ray.cluster import NAMESPACE

#: Seconds for a machine to take a connection, and for a cluster that takes it to answer: it may just be starting.
_CONNECTING, _STARTING = 5.0, 20.0
#: How many times Ray asks the cluster who it is, about a second each, whatever the answer; read at every ``ray.init``.
_TRIES = "RAY_gcs_server_port_wait_time_s"
#: What stands in the answer of a cluster that does not take a token.
_REFUSED = ("InvalidAuthToken", "Unauthenticated")
_ONE_AT_A_TIME = threading.Lock()


def connect(address: str) -> None:
    """Connect this process to the cluster at ``address`` (``auto``: the one of this machine), if it is not yet.

    Raises:
        NoDisplay: There is none.
        SetupError: It does not take this process's token, or has other versions of Ray or of Python.
    """
    with _ONE_AT_A_TIME:  # many may ask at once, each in a thread of its own
        if not ray.is_initialized():
            _connect(address)


def _connect(address: str) -> None:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    given = os.environ.get(_TRIES, "")  # whoever knows that it takes longer there has set it
    deadline = time.monotonic() + (float(given) if given.isdecimal() else _STARTING)
    while True:
        try:
            _reach(address)
            with _one_try():
                ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
            return
        except (RuntimeError, ValueError, OverflowError, RayError, OSError) as error:
            with contextlib.suppress(Exception):
                ray.shutdown()  # of a connection that was refused half way there is something left
            # Ray says so of a cluster that takes connections and did not answer: that may change.
            unanswered = isinstance(error, ConnectionError) and isinstance(error.__cause__, RuntimeError)
            failure = _meaning(error, address)
            if not unanswered or not isinstance(failure, NoDisplay) or time.monotonic() >= deadline:
                raise failure from None


def _reach(address: str) -> None:
    """Raises OSError: nobody listens there. Ray itself tries for longer than a minute."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECTING).close()


@contextlib.contextmanager
def _one_try() -> Iterator[None]:
    """Have Ray ask once: it asks again also when it was refused, and never says so before it gives up."""
    before = os.environ.get(_TRIES)
    os.environ[_TRIES] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_TRIES]
        else:
            os.environ[_TRIES] = before


def _meaning(error: BaseException, address: str) -> SetupError:
    said = [str(one) for one in _causes(error)]
    if isinstance(error, AuthenticationError) or any(mark in text for text in said for mark in _REFUSED):
        return SetupError(
            f"the Ray cluster at {address} does not take this process's token, or it has none: set"
            " RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) to that of the cluster"
        )
    if said[0].startswith("Version mismatch"):
        versions = " ".join(said[0].removeprefix("Version mismatch:").split())
        return SetupError(
            f"the Ray cluster at {address} has another version of Ray or of Python, and Ray needs both to be the same"
            f" ({versions[:200]}): use the cluster's"
        )
    line = said[0].strip().splitlines() or [type(error).__name__]
    return NoDisplay(f"no Ray cluster can be reached at {address} ({line[0][:200]}): start one with: ray start --head")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and those it came of."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__
