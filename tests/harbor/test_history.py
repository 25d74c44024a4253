"""At most N pictures in a request, the current one included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.harbor.fakes import FakeSandbox
from tests.harbor.scripted import DONE, pictures

Make = Callable[..., Any]
CLICK = {"type": "click", "x": 5, "y": 5}


@pytest.mark.parametrize("name", ["computer-1", "deskhand.harbor:ExistingDesktop"])
def test_keep_2_holds_two_pictures_and_the_retry_keeps_the_screen(
    patched: Make, agent: Make, sandbox: FakeSandbox, name: str
) -> None:
    from tests.harbor.agents import whole_run

    kwargs: dict[str, Any] = {"keep_screenshots": 2}
    if name == "computer-1":
        patched(KEEP_SCREENSHOTS="2", SETTLE_SEC="0")
        kwargs = {}
    replies = [CLICK, CLICK, CLICK, "this is no JSON", CLICK, DONE, DONE]
    _, server, _ = whole_run(agent, sandbox, replies, name, **kwargs)
    # The fifth request asks again and brings no picture of its own: the newest of the history is the current screen.
    assert [pictures(body) for body in server.bodies] == [1, 2, 2, 2, 2, 2, 2]
    retry = server.bodies[4]["messages"]
    assert "parsing errors" in str(retry[-1]["content"])
    newest = max(place for place, message in enumerate(retry) if pictures({"messages": [message]}))
    assert newest == len(retry) - 3, "the picture of the turn whose reply did not parse"


@pytest.mark.parametrize("name", ["computer-1", "deskhand.harbor:ExistingDesktop"])
def test_the_turn_caps_request_stays_within_it(patched: Make, agent: Make, sandbox: FakeSandbox, name: str) -> None:
    from tests.harbor.agents import whole_run

    kwargs: dict[str, Any] = {"keep_screenshots": 2}
    if name == "computer-1":
        patched(KEEP_SCREENSHOTS="2", SETTLE_SEC="0")
        kwargs = {}
    sandbox.instead.append((r"^test -f", (1, "", "")))
    made, server, context = whole_run(agent, sandbox, [CLICK], name, max_turns=4, **kwargs)
    assert [pictures(body) for body in server.bodies] == [1, 2, 2, 2, 2]
    assert "final answer" in str(server.bodies[-1]["messages"][-1]["content"])
    assert len(made._fallback_message_history()) > 0
    held = sum(pictures({"messages": [message]}) for message in made._fallback_message_history())
    assert held == 1, "the request itself brings the other"
    assert context.metadata is not None
    assert context.metadata["early_termination_reason"] == "max_turns_reached"


def test_without_it_all_are_kept(agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import whole_run

    _, server, _ = whole_run(agent, sandbox, [CLICK, CLICK, DONE, DONE], "deskhand.harbor:ExistingDesktop")
    assert [pictures(body) for body in server.bodies] == [1, 2, 3, 4]
