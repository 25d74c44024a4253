"""What S150 and the adapted policy wait for, on recorded traces and on some made for one rule each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench.settle.adapted import Adapted, ambient_places, is_throbber
from bench.settle.measures import cosmetic, near, steady
from bench.settle.policies import S150, S150_STRICT, Fixed, QuietDamage, Rules
from bench.settle.simulator import Policy, Verdict, replay
from bench.settle.traces import Event

from .settle_traces import Box, frame, mapped, recorded, trace

ADAPTED = Adapted()
KINDS = ("submenu", "mp-type", "ff-scroll", "ff-img600", "ff-noclick", "xt-slow")
WINDOW: Box = (200, 200, 400, 300)
BOTH = pytest.mark.parametrize("policy", [S150, ADAPTED], ids=lambda policy: policy.name)


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_a_recorded_action_is_waited_for(policy: Policy, kind: str) -> None:
    recording = recorded(kind)
    waited = replay(policy, recording).waited
    assert cosmetic(recording, waited)
    assert steady(recording) <= waited < 2.0


@pytest.mark.parametrize(
    ("kind", "s150_is_right"),
    [
        ("ff-page-gap", True),  # 92 ms between the address bar that closes and the page
        ("ff-img1500", False),  # a throbber for a second and a half: S150 takes it for an animation
        ("xt-late-paint", False),  # the shell is back 22 ms before its output is painted; a clock is cut out
    ],
)
def test_recordings_of_our_own_desktop(kind: str, s150_is_right: bool) -> None:
    """Two of them gave a rule its form: the quiet of a browser, and a terminal's after its command."""
    recording = recorded(kind)
    assert cosmetic(recording, 2.0)
    assert cosmetic(recording, replay(ADAPTED, recording).waited)
    assert cosmetic(recording, replay(S150, recording).waited) is s150_is_right


def test_a_recorded_spinner_that_turned_before_is_ambient() -> None:
    recording = recorded("ff-ambient")
    verdict = replay(ADAPTED, recording)
    assert verdict.outcome == "settled"
    assert 0.035 < verdict.waited < 0.3  # the typed words are there at 0.034
    assert replay(S150, recording).outcome == "animating"


def test_what_no_policy_knows() -> None:
    """With reduced motion the browser's throbber stands still: nothing on the screen says that an image is coming."""
    recording = recorded("ff-still-throbber")
    assert cosmetic(recording, 2.0)
    for policy in (S150, ADAPTED):
        assert not cosmetic(recording, replay(policy, recording).waited)


@pytest.mark.parametrize("kind", KINDS)
def test_the_adapted_policy_never_waits_longer_there(kind: str) -> None:
    assert replay(ADAPTED, recorded(kind)).waited <= replay(S150, recorded(kind)).waited + 0.001


def test_a_quiet_that_is_too_short_is_seen_to_be() -> None:
    """The measure can fail: without its throbber rule, ping and quiet, the late image is missed."""
    hasty = Rules("hasty", quiet=0.040, quiet_by_ping=0.0)
    assert not cosmetic(recorded("ff-img600"), replay(hasty, recorded("ff-img600")).waited)


def test_strict_waits_for_the_scroll_bar() -> None:
    assert near(recorded("ff-scroll"), replay(S150_STRICT, recorded("ff-scroll")).waited)


def test_a_fixed_wait_is_fixed() -> None:
    assert replay(Fixed(0.5), recorded("submenu")) == Verdict("settled", 0.5)


def test_quiet_damage_counts_from_the_last_event() -> None:
    made = trace([frame(0.05, WINDOW), frame(0.12, WINDOW)])
    assert replay(QuietDamage(0.1), made).waited == pytest.approx(0.22)
    assert replay(QuietDamage(0.1), trace()).waited == pytest.approx(0.1)
    assert replay(QuietDamage(0.1, 0.5), trace()).waited == pytest.approx(0.5)


@BOTH
def test_nothing_changes(policy: Policy) -> None:
    assert replay(policy, trace(pings=[(0.0, 0.25)])).waited == pytest.approx(0.35)


@BOTH
def test_a_window_that_does_not_answer_is_given_a_time(policy: Policy) -> None:
    assert replay(policy, trace(pings=())).waited == pytest.approx(0.2)


@BOTH
def test_a_window_that_has_not_painted_is_waited_for(policy: Policy) -> None:
    made = trace([frame(0.35, WINDOW)], events=[mapped(0.03, WINDOW)])
    assert replay(policy, made).waited > 0.35


@BOTH
def test_a_window_outside_of_the_screen_is_not(policy: Policy) -> None:
    made = trace([frame(0.02, WINDOW)], events=[mapped(0.01, (-100, -100, 10, 10), override_redirect=True)])
    assert replay(policy, made).waited < 0.2


@BOTH
def test_a_window_that_unmapped_again_is_not(policy: Policy) -> None:
    made = trace(events=[mapped(0.01, WINDOW), Event(0.02, "Unmap", (7,))])
    assert replay(policy, made).waited == pytest.approx(0.11)


@BOTH
def test_a_launch_waits_for_its_window(policy: Policy) -> None:
    made = trace([frame(0.75, WINDOW)], action="launch", events=[mapped(0.7, WINDOW)])
    assert replay(policy, made).waited > 0.75


@BOTH
def test_a_busy_pointer_is_waited_for(policy: Policy) -> None:
    made = trace(events=[Event(0.01, "cursor", ("watch",)), Event(0.6, "cursor", ("left_ptr",))])
    assert replay(policy, made).waited >= 0.6


@BOTH
def test_a_move_waits_for_a_popup(policy: Policy) -> None:
    still = trace([frame(0.01, WINDOW)], action="move")
    assert replay(policy, still).waited == pytest.approx(0.31)
    popup = trace(
        [frame(0.01, WINDOW), frame(0.22, WINDOW)],
        action="move",
        events=[mapped(0.21, WINDOW, override_redirect=True)],
    )
    assert replay(policy, popup).waited < 0.4


@BOTH
def test_what_turns_for_ever_is_an_animation(policy: Policy) -> None:
    spinner: Box = (300, 300, 60, 60)
    made = trace([frame(0.02 * step, spinner) for step in range(1, 250)])
    verdict = replay(policy, made)
    assert verdict.outcome == "animating"
    assert verdict.waited < 1.2


def test_a_throbber_is_waited_for_until_the_timeout() -> None:
    throbber: Box = (300, 300, 12, 12)
    made = trace([frame(0.02 * step, throbber) for step in range(1, 250)])
    assert replay(S150, made).outcome == "animating"
    assert replay(ADAPTED, made) == Verdict("timeout", 2.0)


def test_a_throbber_that_skips_frames_promises_more() -> None:
    throbber: Box = (300, 300, 12, 12)
    changes = [frame(0.02 * step, throbber) for step in range(1, 10)]
    late = trace([*changes, frame(0.31, WINDOW)], pings=[(0.0, 0.001)])
    assert is_throbber(changes)
    assert not is_throbber(late.frames)
    assert replay(ADAPTED, late).waited > 0.31
    assert replay(replace(ADAPTED, throbber=0.0), late).waited < 0.31


def test_a_slow_client_gets_a_longer_quiet() -> None:
    changes = [frame(0.01, WINDOW)]
    quick, slow = trace(changes, pings=[(0.0, 0.005)]), trace(changes, pings=[(0.0, 0.120)])
    assert replay(ADAPTED, quick).waited == pytest.approx(0.08)
    assert replay(ADAPTED, slow).waited == pytest.approx(0.25)


def test_a_browser_keeps_its_quiet_after_what_may_load_something() -> None:
    changes = [frame(0.01, WINDOW)]
    waits = [
        replay(ADAPTED, trace(changes, action=action, kind="ff-made", pings=[(0.0, 0.005)])).waited
        for action in ("key", "click", "scroll", "type")
    ]
    assert waits == pytest.approx([0.13, 0.13, 0.08, 0.08])


@pytest.mark.parametrize(
    ("box", "pixels", "action", "counts"),
    [
        ((100, 100, 1, 18), None, "key", False),  # a caret
        ((100, 100, 1, 40), None, "key", False),  # a tall one
        ((100, 100, 1, 41), None, "key", True),
        ((100, 100, 5, 4), 14, "key", True),  # a throbber's arc
        ((100, 100, 4, 4), 14, "key", True),
        ((100, 100, 3, 2), 6, "key", False),  # a speck
        ((100, 100, 6, 1), 6, "key", True),
        ((100, 100, 12, 60), None, "key", True),
        ((100, 100, 12, 60), None, "scroll", False),  # a scroll bar
        ((100, 100, 60, 12), None, "key", True),
    ],
)
def test_what_does_not_count(box: Box, pixels: int | None, action: str, counts: bool) -> None:
    made = trace([frame(0.09, box, pixels=pixels)], action=action, pings=[(0.0, 0.0)])
    waited = replay(ADAPTED, made).waited
    assert (waited > 0.15) is counts


def test_a_terminal_is_waited_for_until_it_has_painted_its_last_line() -> None:
    """The shell is back before the terminal has drawn what the command wrote."""
    changes = [frame(0.01, WINDOW), frame(0.72, WINDOW)]
    made = trace(changes, kind="xt-made", action="type", pings=(), tty=((0.01, True), (0.70, False)))
    assert replay(ADAPTED, made).waited > 0.72
    assert replay(S150, made).waited < 0.72


def test_what_moved_before_the_action_is_ambient() -> None:
    spinner: Box = (300, 300, 60, 60)
    before = tuple(frame(-0.02 * step, spinner) for step in range(60, 0, -1))
    turning = [frame(0.02 * step, spinner) for step in range(1, 250)]
    changes = sorted([*turning, frame(0.05, WINDOW)])
    assert ambient_places(before) == [spinner]
    learnt = replay(ADAPTED, trace(changes, before=before))
    assert learnt.outcome == "settled"
    assert 0.05 < learnt.waited < 0.3
    assert replay(replace(ADAPTED, ambient=False), trace(changes, before=before)).outcome != "settled"


def test_a_large_change_before_the_action_is_not_ambient() -> None:
    page: Box = (0, 0, 1280, 700)
    assert ambient_places([frame(-0.1 * step, page) for step in range(9, 0, -1)]) == []
    assert ambient_places([frame(-0.2, WINDOW), frame(-0.1, WINDOW)]) == []
