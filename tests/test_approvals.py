"""What needs a person: the policy, and how a session asks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from deskhand import BatchRefused, LocalDisplay, Memory, Outcome, Session, TraceRecorder
from deskhand.approvals import OWN_SCREEN, Ask, Declined, Policy, declined
from deskhand.hand.actions import KINDS
from deskhand.testing import XServer
from deskhand.turns import LeaseTerms
from deskhand.vendors import base, running
from tests.probes import RawWindow
from tests.told import Told
from tests.toolkits import toolkit_window

CLICK = {"action": "click", "x": 10, "y": 20}
TYPE = {"action": "type", "text": "hello"}
SECRET = {"action": "type", "text": "hunter2", "secret": True}


def batch(*actions: Any, **more: Any) -> dict[str, Any]:
    return {"actions": list(actions), **more}


def sources(policy: Policy, *actions: Any, **more: Any) -> list[tuple[int, str]]:
    return [(ask.call, ask.source) for ask in policy.asks(batch(*actions), **more)]


class Person:
    """Answers what a test says, and remembers what was asked."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked: list[Ask] = []

    async def __call__(self, ask: Ask) -> bool:
        self.asked.append(ask)
        return self.answers.pop(0)


def test_there_is_one_kind_of_ask_and_one_wording() -> None:
    assert base.Ask is Ask
    assert running.declined is declined


def test_by_default_nothing_needs_a_person() -> None:
    everything = [{"action": name, "force": True, "secret": True, "app": "a"} for name in KINDS]
    assert Policy().asks(batch(*everything)) == []
    assert Policy().asks_nothing
    assert not OWN_SCREEN.asks_nothing


def test_what_each_rule_asks_for() -> None:
    launch, quit = {"action": "launch", "app": "Firefox"}, {"action": "quit", "app": "Firefox"}
    assert sources(Policy(launch=True), CLICK, launch) == [(1, "policy: launch")]
    assert sources(Policy(forced_quit=True), quit, {**quit, "force": True}) == [(1, "policy: forced quit")]
    assert sources(Policy(secret=True), TYPE, SECRET) == [(1, "policy: secret")]
    looking = [{"action": name} for name in ("screenshot", "zoom", "wait", "wait_window", "cursor_position")]
    assert sources(OWN_SCREEN, *looking, TYPE) == [(5, "policy: input")]


def test_a_secret_is_not_shown() -> None:
    (ask,) = Policy(secret=True).asks(batch(SECRET))
    assert "hunter2" not in str(ask)
    (ask,) = OWN_SCREEN.asks(batch(TYPE))
    assert ask.facts["text"] == "hello"


BANK = {
    "id": 7, "title": "My Bank - Firefox ESR", "app_id": "firefox-esr", "viewable": True,
    "rect": [100, 100, 200, 100], "frame": [2, 2, 20, 2],
}  # fmt: skip


@pytest.mark.parametrize(
    ("action", "asked"),
    [
        ({"action": "click", "x": 150, "y": 150}, True),
        ({"action": "click", "x": 99, "y": 85}, True),  # its frame
        ({"action": "click", "x": 97, "y": 150}, False),
        ({"action": "click", "x": 302, "y": 150}, False),
        ({"action": "click"}, True),  # wherever the pointer is
        ({"action": "drag", "path": [[1, 1], [150, 150]]}, True),
        ({"action": "drag", "path": [[1, 1], [5, 5]]}, False),
        ({"action": "scroll", "x": 5, "y": 5, "dy": 1}, False),
        ({"action": "click", "x": "left", "y": None}, True),  # which the hand will refuse
        (TYPE, True),
        ({"action": "key", "keys": "alt+Tab"}, True),
        ({"action": "focus", "window": 7}, True),
        ({"action": "focus", "window": 8}, False),
        ({"action": "quit", "app": "firefox-esr"}, True),
        ({"action": "move", "x": 150, "y": 150}, False),
        ({"action": "screenshot"}, False),
    ],
)
def test_windows_on_the_list(action: dict[str, Any], asked: bool) -> None:
    policy = Policy(windows=("my bank",))
    found = sources(policy, action, windows=[BANK], screen=(1280, 800))
    assert found == ([(0, "policy: window")] if asked else [])
    assert sources(policy, action, windows=[{**BANK, "viewable": False}], screen=(1280, 800)) == []
    assert sources(policy, action, windows=[{**BANK, "title": "Notes"}], screen=(1280, 800)) == []


def test_the_list_takes_application_ids_and_the_space_of_the_batch() -> None:
    policy = Policy(windows=("Firefox-ESR",))
    space = {"picture": [640, 400]}
    inside = batch({"action": "click", "x": 75, "y": 75}, space=space)
    outside = batch({"action": "click", "x": 200, "y": 75}, space=space)
    assert len(policy.asks(inside, [BANK], (1280, 800))) == 1
    assert policy.asks(outside, [BANK], (1280, 800)) == []
    assert sources(policy, {"action": "launch", "app": "firefox-esr"}) == [(0, "policy: window")]


@pytest.mark.parametrize("broken", [{}, {"actions": None}, {"actions": [None, 3, {"action": 5}]}])
def test_what_is_no_batch_needs_nobody(broken: dict[str, Any]) -> None:
    assert OWN_SCREEN.asks(broken) == []


@pytest.mark.parametrize("wrong", ["bank", [""], [3]])
def test_a_list_that_is_none(wrong: Any) -> None:
    with pytest.raises(TypeError, match="windows"):
        Policy(windows=wrong)


# ---- a session asks


def test_a_yes_lets_it_through_and_a_no_sends_nothing() -> None:
    async def work() -> None:
        backend, person = Told(), Person(True, False)
        session = Session(backend, max_actions=5, policy=Policy(launch=True), approve=person)
        launch = batch({"action": "launch", "app": "a"})
        await session.act(launch)
        with pytest.raises(Declined, match="did not grant permission to run 'launch'") as caught:
            await session.act(launch)
        assert isinstance(caught.value, BatchRefused)
        assert (caught.value.sent, caught.value.index) == ("none", 0)
        assert len(backend.sent) == session.actions_used == 1
        assert len(person.asked) == 2
        await session.act(batch(CLICK))
        assert len(person.asked) == 2

    asyncio.run(work())


def test_nobody_there_is_a_no() -> None:
    async def work() -> None:
        backend = Told()
        session = Session(backend, policy=OWN_SCREEN)
        with pytest.raises(Declined):
            await session.act(batch(CLICK))
        assert session.last_outcome is not None
        assert "did not grant" in session.last_outcome["text"]
        await session.screenshot()
        assert len(backend.sent) == 1

    asyncio.run(work())


def test_on_ones_own_screen_a_yes_holds_for_the_session() -> None:
    async def work() -> None:
        person = Person(False, True)
        session = Session(Told(), policy=OWN_SCREEN, approve=person)
        with pytest.raises(Declined):
            await session.act(batch(CLICK))
        for _ in range(3):
            await session.act(batch(CLICK, TYPE, CLICK))
        assert len(person.asked) == 2

    asyncio.run(work())


def test_everything_in_a_batch_is_asked_before_anything_of_it_is_sent() -> None:
    async def work() -> None:
        backend, person = Told(), Person(True, False)
        session = Session(backend, policy=Policy(launch=True, secret=True), approve=person)
        with pytest.raises(Declined) as caught:
            await session.act(batch({"action": "launch", "app": "a"}, CLICK, SECRET))
        assert caught.value.index == 2
        assert backend.sent == []

    asyncio.run(work())


def test_the_answers_are_recorded(tmp_path: Path) -> None:
    async def work() -> None:
        recorder = TraceRecorder(tmp_path, goal="g")
        session = Session(Told(), trace=recorder, policy=Policy(launch=True), approve=Person(True, False))
        for _ in range(2):
            try:
                await session.act(batch({"action": "launch", "app": "a"}))
            except Declined:
                pass

    asyncio.run(work())
    lines = recorded(tmp_path)
    assert [line["event"] for line in lines] == ["start", "approval", "batch", "approval", "batch"]
    assert [line["outcome"] for line in lines[1::2]] == ["allowed", "declined"]
    assert lines[1]["ask"]["source"] == "policy: launch"
    assert lines[-1]["answer"]["sent"] == "none"


def recorded(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "trace.jsonl").read_text().splitlines()]


def test_every_way_an_ask_can_end_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskhand.session.PARKED", 0.05)

    async def late(ask: Ask) -> bool:
        await asyncio.sleep(60)
        return True

    async def broken(ask: Ask) -> bool:
        raise TimeoutError("the person's own program")

    async def work() -> None:
        session = Session(Told(), trace=TraceRecorder(tmp_path, goal="g"), policy=Policy(launch=True))
        launch = batch({"action": "launch", "app": "a"})
        for approve in (None, late):
            session.approve = approve
            with pytest.raises(Declined):
                await session.act(launch)
            assert session.last_outcome is not None
            assert not session.last_outcome["ok"]
        monkeypatch.setattr("deskhand.session.PARKED", 60)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(session.act(launch), 0.05)
        session.approve = broken
        with pytest.raises(TimeoutError, match="own program"):
            await session.act(launch)

    asyncio.run(work())
    outcomes = [line["outcome"] for line in recorded(tmp_path) if line["event"] == "approval"]
    assert outcomes == ["nobody", "no answer", "cancelled"]


@pytest.mark.parametrize("ends", ["no", "cancelled", "broken"])
def test_the_lease_is_no_longer_than_it_was_however_the_question_ends(display: XServer, ends: str) -> None:
    async def person(ask: Ask) -> bool:
        if ends == "broken":
            raise ValueError("the person's own program")
        if ends == "cancelled":
            await asyncio.sleep(60)
        return False

    async def work() -> None:
        terms = LeaseTerms(ttl=0.05)
        backend = LocalDisplay(display.display)
        async with Session(backend, name="asking", lease=terms, policy=OWN_SCREEN, approve=person) as session:
            with pytest.raises((Declined, ValueError, asyncio.TimeoutError)):
                await asyncio.wait_for(session.act(batch(CLICK)), 1 if ends == "cancelled" else 60)
            other = Session(LocalDisplay(display.display), name="other", lease=LeaseTerms(wait=30))
            async with other:  # it would queue for an hour
                pass

    asyncio.run(work())


def test_nobody_is_asked_about_a_batch_that_will_be_refused() -> None:
    async def work() -> None:
        backend, person = Told(), Person()
        session = Session(backend, max_actions=2, policy=OWN_SCREEN, approve=person)
        for wrong in (
            batch(CLICK, {"action": "clik"}),
            batch(),
            batch(CLICK, CLICK, CLICK),
            {"actions": [CLICK], "x": 1},
        ):
            with pytest.raises(BatchRefused):
                await session.act(wrong)
        assert backend.sent == []
        assert person.asked == []

    asyncio.run(work())


def test_two_runs_of_one_policy_ask_each_for_itself() -> None:
    async def work() -> None:
        people = [Person(True), Person(False)]
        runs = [Session(Told(), policy=OWN_SCREEN, approve=person) for person in people]
        done = await asyncio.gather(*(run.act(batch(CLICK)) for run in runs), return_exceptions=True)
        assert [type(one) for one in done] == [Outcome, Declined]
        assert [len(person.asked) for person in people] == [1, 1]

    asyncio.run(work())


@pytest.mark.parametrize("app", ["firefox-esr", "Firefox ESR", "FIREFOX", "firefox_esr.desktop"])
def test_a_listed_application_is_not_opened_by_another_of_its_names(app: str) -> None:
    assert sources(Policy(windows=("firefox-esr",)), {"action": "launch", "app": app}) == [(0, "policy: window")]
    assert sources(Policy(windows=("bank",)), {"action": "launch", "app": app}) == []


def test_rules_in_words() -> None:
    rules = ["launch", "forced-quit", "window:My Bank", "window:a:b"]
    assert Policy.parse(rules) == Policy(launch=True, forced_quit=True, windows=("My Bank", "a:b"))
    assert Policy.parse([]).asks_nothing
    for wrong in ("windows", "window:", "window", "parse", "", "Launch", "forced_quit"):
        with pytest.raises(ValueError, match="is none of launch, forced-quit, secret, input, window:NAME"):
            Policy.parse([wrong])


def test_a_window_on_the_list_of_a_real_desktop(openbox_display: XServer, tmp_path: Path) -> None:
    async def work() -> None:
        person = Person(False)
        backend = LocalDisplay(openbox_display.display)
        async with Session(backend, policy=Policy(windows=("tk",)), approve=person) as session:
            (window,) = [one for one in await session.windows() if one["type"] == "normal"]
            x, y, width, height = window["rect"]
            assert (await session.act(batch({"action": "click", "x": x + width + 50, "y": y + height + 50}))).ok
            assert person.asked == []
            policy = Policy(windows=(window["title"],))
            session.policy = policy
            with pytest.raises(Declined):
                await session.act(batch({"action": "click", "x": x + 5, "y": y + 5}))
            assert person.asked[0].source == "policy: window"

    with toolkit_window(openbox_display, "tk", tmp_path / "log"):
        asyncio.run(work())


def test_a_declined_click_does_not_arrive(display: XServer) -> None:
    async def work() -> None:
        async with Session(LocalDisplay(display.display), policy=OWN_SCREEN, approve=Person(False, True)) as session:
            with pytest.raises(Declined):
                await session.act(batch(CLICK))
            assert window.all("press") == []
            await session.act(batch(CLICK))
            assert len(window.all("press")) == 1

    with RawWindow(display) as window:
        asyncio.run(work())


@pytest.mark.parametrize("answer", ["no", "yes", 1, ["n"], None])
def test_only_true_is_a_yes(answer: Any) -> None:
    async def approve(ask: Ask) -> Any:
        return answer

    async def main() -> None:
        async with Session(Memory(), policy=Policy(input=True), approve=approve) as session:
            with pytest.raises(Declined):
                await session.act({"actions": [{"action": "click", "x": 1, "y": 1}]})

    asyncio.run(main())
