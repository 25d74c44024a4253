"""The agent by import path, through Harbor's own factory and loops, on a sandbox that keeps every command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskhand.harbor.settings import BadSetting
from tests.harbor.fakes import FakeSandbox, size_of
from tests.harbor.scripted import DONE

Make = Callable[..., Any]
OURS = "deskhand.harbor:ExistingDesktop"
CLICK = {"type": "click", "x": 5, "y": 5}


@pytest.mark.parametrize("driver", [None, "hand"])
def test_one_exec_a_step(agent: Make, sandbox: FakeSandbox, driver: str | None) -> None:
    from tests.harbor.agents import whole_run

    actions = [
        CLICK,
        {"type": "type", "text": "ÅåÉé, 日本語"},
        {"type": "keypress", "keys": ["ctrl", "s"]},
        {"type": "wait"},
        {"type": "scroll", "x": 1, "y": 1, "scroll_y": 300},
    ]
    counts: list[int] = []
    for count in (1, len(actions)):
        before = len(sandbox.commands)
        whole_run(agent, sandbox, [*actions[:count], DONE, DONE], OURS, driver=driver)
        counts.append(len(sandbox.commands) - before)
    assert counts[1] - counts[0] == len(actions) - 1


def test_stock_needs_four(agent: Make, sandbox: FakeSandbox) -> None:
    """What it is compared with: Harbor's own session, on the same sandbox."""
    from tests.harbor.agents import action, run

    made = agent()
    from harbor.agents.computer_1.computer_1 import Computer1Session

    session = made._session = Computer1Session(environment=sandbox, agent_dir=made._env_io_dir)
    sandbox.files["/logs/agent/screenshot_ep0.png"] = b"x"

    async def step() -> None:
        await session.is_session_alive()
        await session.execute(action(**CLICK))
        path = await session.fetch_screenshot("/logs/agent/screenshot_ep0.png")
        await made._screenshot_ref(path)

    sandbox.instead.append(("import -window root", (0, "", "")))
    run(step())
    assert len(sandbox.commands) == 4


def test_the_picture_of_the_step_is_in_the_request_and_in_the_trial(agent: Make, sandbox: FakeSandbox) -> None:
    import base64

    from tests.harbor.agents import whole_run

    _, server, context = whole_run(agent, sandbox, [CLICK, DONE, DONE], OURS)
    url = server.bodies[1]["messages"][-1]["content"][-1]["image_url"]["url"]
    assert url.startswith("data:image/png;base64,")
    content = base64.b64decode(url.partition(",")[2])
    assert size_of(content) == (1024, 900)
    assert (sandbox.trial_paths.agent_dir / "screenshot_ep0.png").read_bytes() == content
    assert context.metadata is not None
    assert context.metadata["deskhand"] == {
        "display": ":1",
        "driver": "hand",
        "size": [1024, 900],
        "blank": False,
        "execs": 7,
    }


def test_nothing_of_harbors_is_changed() -> None:
    from deskhand.harbor import existing_desktop, patching

    ours = str(Path(existing_desktop.__file__).parents[1])
    assert existing_desktop.ExistingDesktop.__mro__[1].__module__ == "harbor.agents.computer_1.computer_1"
    for owner, name in patching.PATCHED:
        code = getattr(vars(owner).get(name), "__code__", None)
        assert code is None or not code.co_filename.startswith(ours), name


def test_the_displays_own_size_is_taken(agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import started

    sandbox.size = (1280, 800)
    made = agent(OURS)
    session = started(made, sandbox)
    assert (session.geometry.desktop_width, session.geometry.desktop_height) == (1280, 800)
    assert "1280x800 pixels" in made._build_provider()._prompt_text("Do it.")


def test_another_size_than_was_said_stops(agent: Make, sandbox: FakeSandbox) -> None:
    from deskhand.harbor.errors import NotReady
    from tests.harbor.agents import started

    with pytest.raises(NotReady, match="is 1024x900, and desktop_width"):
        started(agent(OURS, desktop_width=1280, desktop_height=800), sandbox)


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"driver": "vnc"}, "driver='vnc'"),
        ({"settle": "soon"}, "settle='soon'"),
        ({"settle_sec": 61}, "settle_sec=61"),
        ({"screenshot_size": "big"}, "WIDTHxHEIGHT"),
        ({"keep_screenshots": 0}, "1 or more"),
        ({"coordinate_space": "percent"}, "coordinate_space='percent'"),
        ({"display": "1"}, "display='1'"),
        ({"start_url": "http://localhost"}, "start_url"),
        ({"desktop_width": 800}, "both desktop_width and desktop_height"),
        ({"desktop_width": -1, "desktop_height": 600}, "desktop_width is 1 to 65535 pixels, not -1"),
        ({"desktop_width": 800, "desktop_height": "tall"}, "desktop_height is 1 to 65535 pixels, not 'tall'"),
    ],
)
def test_bad_settings_are_refused_when_the_agent_is_made(agent: Make, kwargs: dict[str, Any], says: str) -> None:
    with pytest.raises(BadSetting) as caught:
        agent(OURS, **kwargs)
    assert says in str(caught.value)


def test_unknown_settings_are_refused_as_harbor_refuses_them(agent: Make) -> None:
    with pytest.raises((TypeError, ValueError), match="setle"):
        agent(OURS, setle="quiet")


def test_zoom_is_a_crop_and_costs_no_exec_more(agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import whole_run

    zoom = {"type": "zoom", "zoom_region": [100, 100, 300, 200]}
    whole_run(agent, sandbox, [zoom, CLICK, DONE, DONE], OURS)
    wishes = [request["picture"] for request in sandbox.requests if "actions" in request]
    assert wishes[1] == {"format": "png", "region": [100, 100, 300, 200]}
    assert "region" not in wishes[2]
    assert size_of((sandbox.trial_paths.agent_dir / "screenshot_ep0.png").read_bytes()) == (200, 100)


def test_a_long_text_is_sent_as_a_file(agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import action, run, started

    session = started(agent(OURS), sandbox)
    text = "a text that is too long for a command's argument. " * 2000
    run(session.execute(action(type="type", text=text)))
    assert sandbox.requests[-1]["actions"] == [{"action": "type", "text": text}]
    assert max(len(command) for command in sandbox.commands) < 131072


def test_what_fails_is_told_to_the_model(agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import whole_run

    failed = {"ok": False, "results": [{"action": "click", "status": "failed", "error": "outside: use x 0-1023"}]}
    started = 0

    def fail_once(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal started
        answer = original(request)
        if any(item["action"] == "click" for item in request.get("actions", [])):
            started += 1
            answer.update(failed)
        return answer

    original, sandbox._hand = sandbox._hand, fail_once  # type: ignore[method-assign]
    _, server, _ = whole_run(agent, sandbox, [CLICK, DONE, DONE], OURS)
    assert started == 1
    assert "outside: use x 0-1023" in json.dumps(server.bodies[1]["messages"][-1]["content"])


def test_a_dead_display_ends_the_trial_to_be_scored(agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import whole_run

    dead = {"ok": False, "sent": "unknown", "results": [], "kind": "no_display", "error": "no X server answers"}
    original = sandbox._hand
    sandbox._hand = lambda request: {**dead} if sandbox.requests[2:] else original(request)  # type: ignore
    made, server, context = whole_run(agent, sandbox, [CLICK, CLICK, CLICK], OURS)
    assert context.metadata is not None
    assert context.metadata["early_termination_reason"] == "runtime_session_dead"
    assert len(server.bodies) == 2
    assert made._latest_screenshot_path.endswith("screenshot_ep0.png"), "no picture was taken for a later one"


def test_a_sandbox_that_is_gone_is_told_apart(
    agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harbor.agents.computer_1.runtime import RuntimeRequestError

    from deskhand.harbor import SandboxLost, session
    from tests.harbor.agents import action, run, started

    monkeypatch.setattr(session, "_BETWEEN", 0.0)
    made = started(agent(OURS), sandbox)
    sandbox.instead.append(("", RuntimeError("No such container")))
    with pytest.raises(SandboxLost, match="No such container") as caught:
        run(made.execute(action(**CLICK)))
    assert isinstance(caught.value, RuntimeRequestError)
    assert not caught.value.recoverable
    count = len(sandbox.commands)
    with pytest.raises(SandboxLost):
        run(made.fetch_screenshot("/logs/agent/screenshot_ep0.png"))
    assert len(sandbox.commands) == count, "nobody asks a sandbox that is gone"


def test_one_command_that_fails_is_not_a_lost_sandbox(agent: Make, sandbox: FakeSandbox) -> None:
    from harbor.agents.computer_1.runtime import RuntimeRequestError

    from deskhand.harbor import SandboxLost
    from tests.harbor.agents import action, run, started

    made = started(agent(OURS), sandbox)
    sandbox.instead.append(("base64 -d", RuntimeError("the transport had a hiccup")))
    with pytest.raises(RuntimeRequestError, match="hiccup") as caught:
        run(made.execute(action(**CLICK)))
    assert not isinstance(caught.value, SandboxLost)


def test_no_python_falls_back_on_the_tools(agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import started

    sandbox.instead.append(("python3 -c", (127, "", "python3: not found")))
    session = started(agent(OURS), sandbox)
    assert session.desktop.driver.name == "tools"


def test_the_hand_without_python_is_a_clear_error(agent: Make, sandbox: FakeSandbox) -> None:
    from deskhand.harbor.errors import NotReady
    from tests.harbor.agents import started

    sandbox.instead.append(("python3 -c", (127, "", "python3: not found")))
    with pytest.raises(NotReady, match="driver=tools does without"):
        started(agent(OURS, driver="hand"), sandbox)


def test_tools_that_are_missing_are_named(agent: Make, sandbox: FakeSandbox) -> None:
    from deskhand.harbor.errors import NotReady
    from tests.harbor.agents import started

    sandbox.instead.append(("deskhand-display", (0, "deskhand-missing xdotool", "")))
    with pytest.raises(NotReady, match="no xdotool"):
        started(agent(OURS, driver="tools"), sandbox)


def test_a_picture_is_never_written_through_a_link(agent: Make, sandbox: FakeSandbox, tmp_path: Any) -> None:
    from tests.harbor.agents import run, started

    session = started(agent(OURS), sandbox)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    link = sandbox.trial_paths.agent_dir / "screenshot_ep0.png"
    link.symlink_to(precious)
    run(session.fetch_screenshot("/logs/agent/screenshot_ep0.png"))
    assert precious.read_text() == "mine"
    assert not link.is_symlink()


def test_developer_keys_are_allowed_on_a_desktop(agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import action, run, started

    session = started(agent(OURS), sandbox)
    run(session.execute(action(type="keypress", keys=["F12"])))
    assert sandbox.requests[-1]["actions"] == [{"action": "key", "keys": "F12"}]


def test_bash_is_harbors_own_and_the_next_picture_is_new(agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import action, run, started

    session = started(agent(OURS, extra_tools=["bash"]), sandbox)
    run(session.execute(action(**CLICK)))
    run(session.execute(action(type="bash", command="xterm &")))
    asked = len(sandbox.requests)
    run(session.fetch_screenshot("/logs/agent/screenshot_ep0.png"))
    assert len(sandbox.requests) == asked + 1
    assert sandbox.requests[-1]["settle"]["mode"] == "quiet"
