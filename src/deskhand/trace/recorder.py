"""Record one session while it runs: ``trace.jsonl``, the pictures, and at the end the page and a summary.

A line of ``trace.jsonl`` is one event, ``{"event": "start" | "say" | "model" | "tool" | "approval" | "batch" |
"error" | "finish", ...}``; times are seconds since the epoch, durations seconds. A line is complete and with the kernel
when the call returns, so a run that is killed leaves a readable trace; ``write_page`` makes the page of it afterwards.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal

from deskhand.hand.errors import SetupError
from deskhand.trace.page import write_page
from deskhand.trace.redaction import Redactor

TRACE = "trace.jsonl"
PAGE = "index.html"
SUMMARY = "summary.json"
_PICTURE = re.compile(r"\d{4,}\.(?:png|jpg|webp)")
_SUFFIX = {"png": "png", "jpeg": "jpg", "webp": "webp"}
_OUTCOMES = ("done", "failed", "stopped")

# What others gave; the rest of a line (step numbers, times, file names) is ours and never masked.
_GIVEN_LIST = "goal title facts text name answer envelope before_facts checks given reply ask"
_GIVEN = frozenset(_GIVEN_LIST.split())


class TraceRecorder:
    """The trace of one session. Calls may come from several threads.

    As a context manager it finishes the trace on the way out, as failed, or as stopped on an interrupt, when nobody
    did before.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        goal: str,
        title: str = "",
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Start a trace in ``directory``, which is made if needed (for this account only).

        Args:
            directory: Where to record. Other files may be there, an earlier trace may not.
            goal: What the agent was asked to do.
            title: A short name for the run, if it has one.
            facts: Shown in the page's head (model, display ...). ``screen``, ``[width, height]`` in pixels, lets
                positions that were never sent be drawn also before the first picture.

        Raises:
            SetupError: The directory holds a trace, or can not be written.
        """
        self.directory = Path(directory)
        self._lock = threading.RLock()
        self._redactor = Redactor()
        self._step = 0
        self._pictures = 0
        self._last: tuple[str, bytes] | None = None
        self._finished: Path | None = None
        self._finish_written = False
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for entry in sorted(os.listdir(self.directory)):
                if entry in (TRACE, PAGE, SUMMARY) or _PICTURE.fullmatch(entry):
                    raise self._taken(entry)
            self._file = self._open("x")
        except FileExistsError as error:
            # mkdir: a file has that name. open: another recorder was faster.
            raise (
                self._taken(TRACE)
                if self.directory.is_dir()
                else SetupError(f"cannot record a trace in {self.directory}: it is not a directory. Name another one.")
            ) from error
        except OSError as error:
            raise self._unwritable(error) from error
        self._append({"event": "start", "version": 1, "goal": goal, "title": title, "facts": dict(facts or {})})

    def say(self, text: str) -> None:
        """What the agent said or thought before what it does next."""
        self._append({"event": "say", "text": text})

    def model_turn(
        self,
        name: str,
        *,
        given: Any,
        reply: Any,
        text: str,
        facts: Mapping[str, Any],
        started: float,
        elapsed_s: float,
    ) -> None:
        """One question to a model and its reply; what it then asked for follows as batches and tool calls.

        Args:
            name: The model.
            given: What the request held that the one before did not, pictures left out: they are in the trace.
            reply: The reply in the vendor's own form, as JSON.
            text: What it said in words.
            facts: ``stop`` and ``reason`` (why the reply ended), ``tokens`` (``input``, ``cache_read``,
                ``cache_write``, ``output``), ``pictures`` (how many the request held), ``retries``, ``cost`` (None
                when no prices are known).
            started: When it was asked, seconds since the epoch.
            elapsed_s: Until the reply was there, seconds.
        """
        event = {"event": "model", "name": name, "started": started, "elapsed_s": elapsed_s}
        self._append({**event, "given": given, "reply": reply, "text": text, "facts": dict(facts)}, step=True)

    def tool(self, name: str, answer: Any) -> None:
        """A call that is no batch, and what came back (``computer_apps`` and its list)."""
        self._append({"event": "tool", "name": name, "answer": answer}, step=True)

    def approval(self, ask: Mapping[str, Any], answer: str, started: float, elapsed_s: float) -> None:
        """A person was asked, or would have been had there been one.

        Args:
            ask: What for: ``verb``, ``source`` (who wanted it asked), ``reason`` (what the person read), ``facts``.
            answer: ``allowed``, ``declined``, ``nobody``, ``no answer`` or ``cancelled``.
            started: When, seconds since the epoch.
            elapsed_s: Until the answer was there, seconds.
        """
        event = {"event": "approval", "started": started, "elapsed_s": elapsed_s, "outcome": answer}
        self._append({**event, "ask": dict(ask)}, step=True)

    def error(self, text: str) -> None:
        """A refusal or a failure outside a batch."""
        self._append({"event": "error", "text": text}, step=True)

    def batch(
        self,
        envelope: Mapping[str, Any],
        answer: Mapping[str, Any],
        picture: bytes | None,
        picture_format: Literal["png", "jpeg", "webp"],
        started: float,
        elapsed_s: float,
        *,
        before: bytes | None = None,
        before_format: Literal["png", "jpeg", "webp"] = "png",
        before_facts: Mapping[str, Any] | None = None,
    ) -> None:
        """One batch: the envelope as sent, the answer as given, and the picture's exact bytes.

        Args:
            envelope: The batch. Text marked secret, here or in anything else that is recorded (a model's reply comes
                first), is masked wherever it occurs, in the lines that are already there too.
            answer: The answer. A picture inside it as ``base64`` is left out, as the file is beside the trace.
            picture: The picture of the answer, or None.
            picture_format: What ``picture`` is.
            started: When the batch was sent, seconds since the epoch.
            elapsed_s: Until the answer was there, seconds.
            before: The picture the agent looked at, when it is not the last one recorded.
            before_format: What ``before`` is.
            before_facts: ``scale`` (picture pixels for one screen pixel) and ``region`` of ``before``.

        Raises:
            ValueError: A format that is none of the three.
            SetupError: The trace can not be written.
        """
        for name in (picture_format, before_format):
            if name not in _SUFFIX:
                raise ValueError(f"picture format {name!r} is none of {', '.join(_SUFFIX)}")
        with self._lock:
            before_name = self._save(before, before_format) if before is not None else self._last and self._last[0]
            after_name = self._save(picture, picture_format) if picture is not None else None
            self._append(
                {
                    "event": "batch",
                    "started": started,
                    "elapsed_s": elapsed_s,
                    "envelope": envelope,
                    "answer": _without_base64(answer),
                    "before": before_name,
                    "before_facts": dict(before_facts) if before_facts is not None else None,
                    "after": after_name,
                },
                step=True,
            )

    def finish(
        self,
        outcome: Literal["done", "failed", "stopped"],
        text: str = "",
        checks: Sequence[Mapping[str, Any]] = (),
    ) -> Path:
        """End the trace, write ``summary.json`` and the page; the page's path.

        A second call changes nothing and gives the same path. A check is a mapping such as ``{"name": "the file",
        "ok": True, "expected": "hello", "found": "hello"}``.

        Raises:
            ValueError: An outcome that is none of the three.
            SetupError: The page can not be written; the call may be made again.
        """
        if outcome not in _OUTCOMES:
            raise ValueError(f"outcome {outcome!r} is none of {', '.join(_OUTCOMES)}")
        with self._lock:
            if self._finished is None:
                if not self._finish_written:
                    self._append(
                        {"event": "finish", "outcome": outcome, "text": text, "checks": list(checks)}, step=True
                    )
                    self._finish_written = True
                try:
                    page = write_page(self.directory)
                    self._file.close()
                except OSError as error:
                    raise self._unwritable(error) from error
                self._finished = page
            return self._finished

    def __enter__(self) -> TraceRecorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            self.finish("stopped", "the run ended without saying how it went")
        else:
            # Exception is what went wrong; what is above it (KeyboardInterrupt, CancelledError) is somebody's wish.
            self.finish("failed" if isinstance(error, Exception) else "stopped", str(error) or type(error).__name__)

    def _append(self, event: dict[str, Any], step: bool = False) -> None:
        with self._lock:
            if self._finish_written:
                raise RuntimeError("the trace is finished; start another one to record more")
            if self._redactor.learn({name: event[name] for name in _GIVEN if name in event}):
                self._mask_earlier_lines()
            line: dict[str, Any] = {"event": event.pop("event"), "time": time.time()}
            if step:
                self._step += 1
                line["step"] = self._step
            try:
                self._file.write(_line(self._masked({**line, **event})))
                self._file.flush()
            except OSError as error:
                raise self._unwritable(error) from error

    def _masked(self, event: dict[str, Any]) -> dict[str, Any]:
        numbers = event["event"] != "batch"
        return {
            name: self._redactor.clean(value, name, numbers) if name in _GIVEN else value
            for name, value in event.items()
        }

    def _mask_earlier_lines(self) -> None:
        """The goal or the agent's words may hold what only now turns out to be a secret."""
        path = self.directory / TRACE
        old = path.read_bytes()
        new = b"".join(map(self._masked_line, old.splitlines()))
        if new == old:
            return
        fresh = self.directory / (TRACE + ".new")
        try:
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(new)
            os.replace(fresh, path)
            self._file.close()
            self._file = self._open("a")
        except OSError as error:
            raise self._unwritable(error) from error

    def _masked_line(self, line: bytes) -> bytes:
        try:
            return _line(self._masked(json.loads(line)))
        except ValueError:  # cut short when the disk was full
            return self._redactor.clean_text(line.decode("utf-8", "replace")).encode() + b"\n"

    def _save(self, picture: bytes, picture_format: str) -> str:
        if self._last is not None and self._last[1] == picture and self._last[0].endswith(_SUFFIX[picture_format]):
            return self._last[0]
        name = f"{self._pictures + 1:04d}.{_SUFFIX[picture_format]}"
        try:
            with open(os.open(self.directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(picture)
        except OSError as error:
            raise self._unwritable(error) from error
        self._pictures += 1
        self._last = (name, picture)
        return name

    def _open(self, mode: Literal["x", "a"]) -> BinaryIO:
        new = os.O_CREAT | os.O_EXCL if mode == "x" else 0
        return open(os.open(self.directory / TRACE, os.O_WRONLY | os.O_APPEND | new, 0o600), "ab")

    def _taken(self, entry: str) -> SetupError:
        return SetupError(
            f"{self.directory} already holds a trace ({entry}): name an empty directory, or move that trace away."
        )

    def _unwritable(self, error: OSError) -> SetupError:
        reason = error.strerror or type(error).__name__
        return SetupError(f"cannot write the trace in {self.directory}: {reason}. Make room there or name another one.")


def _line(event: dict[str, Any]) -> bytes:
    # backslashreplace: a lone surrogate becomes \udXXX, which is JSON's own escape for it.
    text = json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _without_base64(answer: Mapping[str, Any]) -> dict[str, Any]:
    plain = dict(answer)
    if isinstance(plain.get("picture"), Mapping):
        plain["picture"] = {name: value for name, value in plain["picture"].items() if name != "base64"}
    return plain
