"""Replays a policy over a trace. The policy sees what it would have seen, and nothing of what comes later."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple, Protocol

from .measures import FIXED
from .traces import Event, Frame, Trace


class Verdict(NamedTuple):
    """``outcome`` is ``settled``, ``animating`` or ``timeout``; ``waited`` is in seconds after the last input event."""

    outcome: str
    waited: float


class Seen:
    """What is known of a trace at ``now``."""

    def __init__(self, trace: Trace, now: float = 0.0) -> None:
        self._trace = trace
        self._frame_times = [frame.time for frame in trace.frames]
        self._event_times = [event.time for event in trace.events]
        self._foreground = trace.foreground_busy()
        self._asked: list[float] = []
        self.now = now
        self.action = trace.action
        self.terminal = trace.terminal
        #: Whether the client lets other processes of the same program draw its content, as browsers do.
        self.content_processes = trace.kind.startswith("ff")

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Changes of pixels since the action."""
        return self._trace.frames[: bisect_right(self._frame_times, self.now)]

    @property
    def before(self) -> tuple[Frame, ...]:
        """Changes of pixels before the action."""
        return self._trace.before

    @property
    def events(self) -> tuple[Event, ...]:
        return self._trace.events[: bisect_right(self._event_times, self.now)]

    @property
    def damage(self) -> list[float]:
        """Times of the damage events."""
        return [row[0] for row in self._trace.damage if row[0] <= self.now]

    @property
    def foreground_busy(self) -> bool:
        """Whether the terminal runs a command."""
        busy = False
        for time, value in self._foreground:
            if time <= self.now:
                busy = value
        return busy

    @property
    def foreground_freed(self) -> float | None:
        """When the terminal's last command ended; None while it runs, and when none has run since the action."""
        freed: float | None = None
        busy = False
        for time, value in self._foreground:
            if time <= self.now:
                freed = None if value else time if busy else freed
                busy = value
        return freed

    @property
    def answers_pings(self) -> bool:
        return any(ping.role == "A" for ping in self._trace.pings)

    def answered(self, sent: float) -> float | None:
        """When the target had answered the first ping sent at ``sent`` or later; None when not yet, or never."""
        if sent not in self._asked:
            self._asked.append(sent)
        answer = self._answer(sent)
        return answer if answer is not None and answer <= self.now else None

    @property
    def slowest_ping(self) -> float:
        """The longest time an answer to one of this policy's pings took so far; those under way count too. Seconds."""
        slowest = 0.0
        for asked in self._asked:
            for ping in self._trace.pings:
                if ping.role == "A" and ping.sent >= asked and ping.sent <= self.now:
                    end = self.now if ping.answered is None else min(self.now, ping.answered)
                    slowest = max(slowest, end - ping.sent)
                    break
        return slowest

    def next_time(self) -> float:
        """When something more will be known; infinite when nothing is. For the simulator alone."""
        times = [self._frame_times, self._event_times, [time for time, _busy in self._foreground]]
        times.append(sorted(answer for answer in map(self._answer, self._asked) if answer is not None))
        times.append([row[0] for row in self._trace.damage])
        later = [line[bisect_right(line, self.now)] for line in times if bisect_right(line, self.now) < len(line)]
        return min(later, default=float("inf"))

    def _answer(self, sent: float) -> float | None:
        for ping in self._trace.pings:
            if ping.role == "A" and ping.sent >= sent:
                return ping.answered
        return None


class Policy(Protocol):
    """When has the screen settled? One object serves many traces and remembers nothing between them."""

    @property
    def name(self) -> str: ...

    def look(self, seen: Seen) -> Verdict | float:
        """The verdict at ``seen.now``, or the time at which to look again if nothing happens until then."""
        ...


def replay(policy: Policy, trace: Trace, timeout: float = FIXED) -> Verdict:
    """What the policy would have done."""
    seen = Seen(trace)
    while True:
        answer = policy.look(seen)
        if isinstance(answer, Verdict):
            return answer
        if seen.now >= timeout:
            return Verdict("timeout", timeout)
        # A wake in the past would stand still; the clock of a real policy moves on too.
        seen.now = min(max(answer, seen.now + 0.0005), max(seen.next_time(), seen.now + 0.0005), timeout)
