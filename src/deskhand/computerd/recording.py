"""``serve --trace DIR``: what everybody does at the desktop, recorded as sessions record it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from deskhand.computerd.logs import say
from deskhand.computerd.served import ServedDesktop, Told
from deskhand.errors import SetupError
from deskhand.trace import TraceRecorder
from deskhand.trace.redaction import MASK

#: Batches that may wait to be written; of more, the pictures are left out: a slow disk must not fill the memory.
_MOST_PICTURES = 32


class Recording:
    """The trace of one run of the daemon, in a directory of its own under ``directory``.

    Args:
        served: Whose batches are recorded.
        directory: Where; made if needed, for this account only.
        private: Sessions of people: what they type is in no record.

    Raises:
        SetupError: It can not be written there.
    """

    def __init__(self, served: ServedDesktop, directory: str | os.PathLike[str], private: Collection[str] = ()) -> None:
        began = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
        self.directory = Path(directory) / f"{began}-{os.getpid()}"
        facts = {"display": served.place[0]}
        self._recorder = TraceRecorder(
            self.directory, goal="What was done at this desktop", title="computerd", facts=facts
        )
        self._private = frozenset(private)
        # A thread of its own: the event loop waits for no disk.
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="deskhand-trace")
        self._waiting = 0
        self._counting = threading.Lock()
        self._failed = False
        self._end = served.subscribe(self._take)

    def close(self) -> None:
        """Write what is left, and the page."""
        self._end()
        self._writing.submit(self._finish)
        self._writing.shutdown()

    def _take(self, told: Told) -> None:
        if told.batch is None or told.answer is None:
            return
        with self._counting:
            self._waiting += 1
            late = self._waiting > _MOST_PICTURES
        self._writing.submit(self._write, told, None if late else told.picture)

    def _write(self, told: Told, picture: bytes | None) -> None:
        try:
            batch, answer = told.batch or {}, told.answer or {}
            if told.session in self._private:
                batch = _masked(batch)
            self._recorder.say(f"By {told.session or 'an agent without a name'}:")
            form = answer.get("picture", {}).get("format", "png")
            self._recorder.batch(batch, answer, picture, form, told.time - told.elapsed_s, told.elapsed_s)
        except Exception as error:  # whatever it is: the record ends, and not in silence
            if not self._failed:
                say("the trace can not be written", 40, reason=str(error))
            self._failed = True
        finally:
            with self._counting:
                self._waiting -= 1

    def _finish(self) -> None:
        try:
            self._recorder.finish("stopped", "computerd ended")
        except SetupError as error:
            say("the trace can not be written", 40, reason=str(error))


def _masked(batch: Mapping[str, Any]) -> dict[str, Any]:
    # Not by marking it secret: a person's text comes in pieces as short as one letter, and that would be masked
    # wherever it occurs.
    actions = batch.get("actions")
    if not isinstance(actions, list):
        return {"actions": MASK}
    return {**batch, "actions": [_masked_action(action) for action in actions]}


def _masked_action(action: Any) -> Any:
    if isinstance(action, Mapping) and action.get("action") == "type":
        return {name: MASK if name == "text" else value for name, value in action.items() if name != "secret"}
    return action
