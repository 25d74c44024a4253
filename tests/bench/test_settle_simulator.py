"""A policy that is replayed sees what was there at its time, and nothing later."""

from __future__ import annotations

from bench.settle.simulator import Seen, Verdict, replay

from .settle_traces import Box, frame, mapped, trace

BOX: Box = (100, 100, 200, 100)


class Watcher:
    """Notes what it sees each time it is asked, until a time of its own."""

    name = "watcher"

    def __init__(self, until: float, every: float = float("inf")) -> None:
        self.until, self.every = until, every
        self.seen: list[tuple[float, int, int]] = []

    def look(self, seen: Seen) -> Verdict | float:
        self.seen.append((seen.now, len(seen.frames), len(seen.events)))
        if seen.now >= self.until:
            return Verdict("settled", seen.now)
        return min(self.until, seen.now + self.every)


def test_it_is_asked_at_each_thing_that_happens_and_sees_no_later_one() -> None:
    watcher = Watcher(until=0.5)
    made = trace([frame(0.1, BOX), frame(0.3, BOX), frame(0.9, BOX)], events=[mapped(0.2, BOX)])
    assert replay(watcher, made) == Verdict("settled", 0.5)
    assert watcher.seen == [(0.0, 0, 0), (0.1, 1, 0), (0.2, 1, 1), (0.3, 2, 1), (0.5, 2, 1)]


def test_it_is_asked_at_the_time_it_wants() -> None:
    watcher = Watcher(until=0.25, every=0.1)
    replay(watcher, trace())
    assert [round(now, 6) for now, _frames, _events in watcher.seen] == [0.0, 0.1, 0.2, 0.25]


def test_the_timeout_ends_it() -> None:
    assert replay(Watcher(until=9.0), trace(), timeout=0.7) == Verdict("timeout", 0.7)


def test_a_wish_in_the_past_does_not_stand_still() -> None:
    class Impatient:
        name = "impatient"

        def look(self, seen: Seen) -> Verdict | float:
            return 0.0

    assert replay(Impatient(), trace(), timeout=0.1).outcome == "timeout"


def test_a_ping_is_answered_when_the_next_recorded_one_was() -> None:
    made = trace(pings=[(0.0, 0.02), (0.05, 0.30)])
    seen = Seen(made)
    assert seen.answered(0.0) is None
    seen.now = 0.02
    assert seen.answered(0.0) == 0.02
    assert seen.answered(0.03) is None
    seen.now = 0.30
    assert seen.answered(0.03) == 0.30


def test_the_slowest_ping_counts_only_those_that_were_sent() -> None:
    seen = Seen(trace(pings=[(0.0, 0.02), (0.05, 0.30)]))
    seen.now = 1.0
    seen.answered(0.0)
    assert round(seen.slowest_ping, 6) == 0.02
    seen.answered(0.04)
    assert round(seen.slowest_ping, 6) == 0.25


def test_a_terminal_without_a_record_is_busy_until_its_own_last_change() -> None:
    clock: Box = (1200, 0, 40, 20)
    made = trace([frame(0.1, BOX), frame(0.8, BOX), frame(1.5, clock)], kind="xt-made", pings=())
    seen = Seen(made)
    assert seen.foreground_busy
    assert seen.foreground_freed is None
    seen.now = 0.9
    assert not seen.foreground_busy
    assert seen.foreground_freed == 0.8
