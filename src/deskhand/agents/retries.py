"""Hear from a vendor's SDK that it tries a request again, so that a person who waits is told."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[float], None]


class _Ear(logging.Handler):
    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.INFO)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        found = re.match(r"Retrying .*?\bin ([\d.]+) seconds", record.getMessage())
        if found:
            self._tell(float(found[1]))


@contextmanager
def told_of_retries(logger: str, tell: Tell) -> Iterator[None]:
    """Within the block ``tell`` gets the seconds that the SDK waits before each new try.

    Its log is the one place where each of the three SDKs says so, for an answer of 429 as for a lost connection.
    """
    log = logging.getLogger(logger)
    level, ear = log.level, _Ear(tell)
    log.addHandler(ear)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(ear)
        log.setLevel(level)
