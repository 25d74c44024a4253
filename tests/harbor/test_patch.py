"""computer-1 with the environment's patch: Harbor's own session on a sandbox that keeps every command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from deskhand.harbor.settings import BadSetting
from tests.harbor.fakes import FakeSandbox, size_of

Make = Callable[..., Any]


def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits that are asked for from now on; they take no time."""
    waits: list[float] = []

    async def sleep(seconds: float, result: Any = None) -> Any:
        waits.append(seconds)
        return result

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return waits


def start(agent: Make, sandbox: FakeSandbox, **kwargs: Any) -> Any:
    from tests.harbor.agents import started

    session = started(agent(**kwargs), sandbox)
    assert session.desktop.settings.blocked_keys, "it has the patch's settings"
    return session


def do(session: Any, **fields: Any) -> Any:
    from tests.harbor.agents import action, run

    return run(session.execute(action(**fields)))


def shoot(session: Any, path: str = "/logs/agent/screenshot_ep0.png") -> Any:
    from tests.harbor.agents import run

    return run(session.fetch_screenshot(path))


def test_start_makes_directories_and_waits_for_the_display_only(
    patched: Make, agent: Make, sandbox: FakeSandbox
) -> None:
    patched()
    start(agent, sandbox)
    assert len(sandbox.commands) == 2
    assert "mkdir -p /tmp/computer_1_runtime /tmp/computer_1-screenshots /logs/agent" in sandbox.commands[0]
    assert "getdisplaygeometry" in sandbox.commands[1]
    for program in ("Xvfb", "startxfce4", "x11vnc", "websockify", "chromium", "wmctrl"):
        assert not any(program in command for command in sandbox.commands), program


def test_start_happens_once(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import run

    patched()
    session = start(agent, sandbox)
    count = len(sandbox.commands)
    run(session.start())
    assert len(sandbox.commands) == count


def test_alive_asks_for_the_display_only(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    from tests.harbor.agents import run

    patched()
    session = start(agent, sandbox)
    count = len(sandbox.commands)
    assert run(session.is_session_alive()) is True
    (asked,) = sandbox.since(count)
    assert asked == "DISPLAY=:1 timeout 10 xdotool getdisplaygeometry"
    sandbox.instead.append(("getdisplaygeometry", (1, "", "Error: Can't open display: :1")))
    assert run(session.is_session_alive()) is False


def test_there_is_no_browser_to_recover_or_reset(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    from harbor.agents.computer_1.runtime import RuntimeRequestError

    from tests.harbor.agents import run

    patched()
    session = start(agent, sandbox)
    count = len(sandbox.commands)
    assert run(session._recover_chromium_if_needed("click", RuntimeError())) is None
    with pytest.raises(RuntimeRequestError, match="no browser to reset"):
        run(session.reset())
    assert len(sandbox.commands) == count


@pytest.mark.parametrize(
    ("driver", "kind", "refused"),
    [
        *(("tools", kind, True) for kind in ("zoom", "navigate", "go_back", "go_forward")),
        *(("hand", kind, True) for kind in ("navigate", "go_back", "go_forward")),
        ("hand", "zoom", False),
    ],
)
def test_what_needs_a_browser_is_refused(
    patched: Make, agent: Make, sandbox: FakeSandbox, driver: str, kind: str, refused: bool
) -> None:
    from harbor.agents.computer_1.runtime import RuntimeRequestError

    patched(DRIVER=driver)
    session = start(agent, sandbox)
    count = len(sandbox.commands)
    given = {"type": kind, "url": "http://localhost", "zoom_region": [0, 0, 10, 10]}
    if not refused:
        assert do(session, **given) == {"status": "ok"}
        return
    with pytest.raises(RuntimeRequestError) as caught:
        do(session, **given)
    assert caught.value.status_code == 400
    assert len(sandbox.commands) == count, "nothing was run"


def test_a_click_settles(patched: Make, agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    patched()
    session = start(agent, sandbox)
    count = len(sandbox.commands)
    waits = slept(monkeypatch)
    do(session, type="click", x=10, y=20)
    assert sandbox.since(count) == ["DISPLAY=:1 xdotool mousemove 10 20 click 1"]
    assert waits == [2.0]


@pytest.mark.parametrize(
    ("fields", "own"),
    [
        ({"type": "wait"}, [1.0]),
        ({"type": "sleep", "duration": 3.0}, [3.0]),
        ({"type": "screenshot"}, []),
        ({"type": "cursor_position"}, []),
        ({"type": "done"}, []),
        ({"type": "answer"}, []),
        ({"type": "terminate"}, []),
    ],
)
def test_nothing_is_waited_for_after_what_changes_nothing(
    patched: Make,
    agent: Make,
    sandbox: FakeSandbox,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    own: list[float],
) -> None:
    patched(SETTLE_SEC="1.5")
    session = start(agent, sandbox)
    waits = slept(monkeypatch)
    do(session, **fields)
    assert waits == own


def test_settle_seconds_are_those_of_the_variable(
    patched: Make, agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(SETTLE_SEC="0.25")
    session = start(agent, sandbox)
    waits = slept(monkeypatch)
    do(session, type="type", text="a")
    assert waits == [0.25]


def test_quiet_waits_in_the_sandbox_with_the_bound(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    patched(SETTLE="quiet", SETTLE_SEC="3")
    session = start(agent, sandbox)
    count = len(sandbox.commands)
    do(session, type="click", x=1, y=2)
    _, settle = sandbox.since(count)
    assert "cksum" in settle
    assert "+ 3000000000" in settle


def test_quiet_and_fixed_are_the_hands_own(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    patched(DRIVER="hand", SETTLE_SEC="1.5")
    session = start(agent, sandbox)
    do(session, type="click", x=1, y=2)
    assert sandbox.requests[-1]["settle"] == {"mode": "fixed", "timeout": 1.5}
    do(session, type="wait")
    assert sandbox.requests[-1]["settle"] == {"mode": "none"}


def test_the_capture_is_one_chain_that_fails_as_a_whole(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    import shlex

    patched(SCREENSHOT_SIZE="640x360")
    session = start(agent, sandbox)
    count = len(sandbox.commands)
    assert shoot(session) == "/logs/agent/screenshot_ep0.png"
    (command,) = sandbox.since(count)
    script = shlex.split(command)[2]
    chain, _, cleanup = script.partition(" || ")
    steps = chain.split(" && ")
    assert steps[0].startswith("rm -f ")
    assert any("import -window root -resize 640x360! png24:" in step for step in steps)
    assert ";" not in chain, "a ';' lets a failure pass"
    assert cleanup.startswith("{ rm -f ")
    assert cleanup.endswith("exit 1; }")


def test_a_failing_capture_after_a_good_one_is_an_error(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    from harbor.agents.computer_1.runtime import RuntimeRequestError

    patched()
    session = start(agent, sandbox)
    shoot(session)
    sandbox.instead.append(("import -window root", (1, "", "import: unable to grab")))
    with pytest.raises(RuntimeRequestError, match="unable to grab"):
        shoot(session, "/logs/agent/screenshot_ep1.png")


def test_another_format_is_refused(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    from harbor.agents.computer_1.runtime import RuntimeRequestError

    patched()
    session = start(agent, sandbox)
    count = len(sandbox.commands)
    with pytest.raises(RuntimeRequestError, match="PNG"):
        shoot(session, "/logs/agent/screenshot_ep0.webp")
    assert len(sandbox.commands) == count


@pytest.mark.parametrize("driver", ["tools", "hand"])
def test_the_prompt_offers_what_there_is(patched: Make, agent: Make, driver: str) -> None:
    from harbor.agents.computer_1.providers.generic import GenericJsonProvider

    patched(DRIVER=driver)
    provider = GenericJsonProvider.from_agent(agent(extra_tools=["bash"]))
    assert provider.screenshot_format == "png"
    text = provider._prompt_text("Do it.")
    assert "navigate" not in text
    assert '"url"' not in text
    assert "zoom-scroll" in text
    assert '"command": <string' in text, "the bash action's fields stay"
    if driver == "tools":
        assert text.replace("zoom-scroll", "").count("zoom") == 0
    else:
        assert '- For "zoom":' in text
        assert "zoom_region" in text
    assert "drag, " in text
    assert "wait, bash, done, answer>" in text


def test_the_prompt_of_another_harbor_stops_the_run(
    patched: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from harbor.agents.computer_1.providers import generic
    from harbor.agents.computer_1.runtime import Computer1Session

    text = (generic._TEMPLATES_DIR / "computer-1-json.txt").read_text()
    (tmp_path / "computer-1-json.txt").write_text(text.replace('- For "navigate"', '- For "goto"'))
    monkeypatch.setattr(generic, "_TEMPLATES_DIR", tmp_path)
    before = Computer1Session.start
    with pytest.raises(BadSetting, match="the rule for navigate 0 times"):
        patched()
    assert Computer1Session.start is before, "nothing is half patched"


def test_it_goes_with_a_patch_that_was_there_before(
    patched: Make, agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harbor.agents.computer_1.providers.generic import GenericJsonProvider

    inner = GenericJsonProvider.from_agent.__func__

    def from_agent(cls: Any, agent: Any) -> Any:
        provider = inner(cls, agent)
        provider._prompt_template = "A grid patch was here.\n" + provider._prompt_template
        return provider

    monkeypatch.setattr(GenericJsonProvider, "from_agent", classmethod(from_agent))
    patched()
    provider = GenericJsonProvider.from_agent(agent())
    assert provider._prompt_template.startswith("A grid patch was here.")
    assert "navigate" not in provider._prompt_template


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"DESKTOP": "new"}, "HARBOR_CUA_DESKTOP='new'"),
        ({"DRIVER": "vnc"}, "HARBOR_CUA_DRIVER='vnc'"),
        ({"SETTLE": "soon"}, "HARBOR_CUA_SETTLE='soon'"),
        ({"SETTLE_SEC": "-1"}, "HARBOR_CUA_SETTLE_SEC='-1'"),
        ({"SETTLE_SEC": "nan"}, "from 0 to 60"),
        ({"SCREENSHOT_SIZE": "640"}, "WIDTHxHEIGHT"),
        ({"KEEP_SCREENSHOTS": "0"}, "1 or more"),
        ({"COORDINATE_SPACE": "percent"}, "HARBOR_CUA_COORDINATE_SPACE='percent'"),
        ({"DISPLAY": "remote:1"}, "HARBOR_CUA_DISPLAY='remote:1'"),
        ({"XAUTHORITY": "cookie"}, "HARBOR_CUA_XAUTHORITY='cookie'"),
    ],
)
def test_a_bad_setting_stops_before_a_trial(patched: Make, variables: dict[str, str], says: str) -> None:
    from harbor.agents.computer_1.runtime import Computer1Session

    before = Computer1Session.start
    with pytest.raises(BadSetting) as caught:
        patched(**variables)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert Computer1Session.start is before


def test_an_empty_value_is_as_unset(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    patched(SETTLE="", KEEP_SCREENSHOTS=" ", SCREENSHOT_SIZE="")
    session = start(agent, sandbox)
    assert session.desktop.settings.settle == "fixed"


def test_the_display_of_the_variable_is_the_one_used(
    patched: Make, agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(DISPLAY=":7", XAUTHORITY="/run/cookie")
    sandbox.instead.append(("deskhand-display", (0, "deskhand-display 1024 900 2 /run/cookie", "")))
    session = start(agent, sandbox)
    count = len(sandbox.commands)
    slept(monkeypatch)
    do(session, type="keypress", keys=["ctrl", "s"])
    assert sandbox.since(count) == [
        "DISPLAY=:7 XAUTHORITY=/run/cookie xdotool key --clearmodifiers ctrl+s",
    ]


def test_harbors_blocked_keys_stay_blocked(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    from harbor.agents.computer_1.runtime import RuntimeRequestError

    patched()
    session = start(agent, sandbox)
    for fields in ({"type": "keypress", "keys": ["F12"]}, {"type": "type", "text": "view-source:x"}):
        with pytest.raises(RuntimeRequestError) as caught:
            do(session, **fields)
        assert caught.value.status_code == 403


def test_another_size_than_the_desktops_stops(patched: Make, agent: Make, sandbox: FakeSandbox) -> None:
    from deskhand.harbor.errors import NotReady

    patched()
    sandbox.size = (1280, 800)
    with pytest.raises(NotReady, match=r"1280x800.*desktop_width=1280 and desktop_height=800"):
        start(agent, sandbox)


@pytest.mark.parametrize("driver", ["tools", "hand"])
def test_clicks_on_a_resized_picture_are_scaled_back(
    patched: Make, agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    patched(DRIVER=driver, SCREENSHOT_SIZE="512x450")
    made = agent()
    from tests.harbor.agents import started

    session = started(made, sandbox)
    slept(monkeypatch)
    do(session, type="click", x=511, y=449)
    if driver == "tools":
        assert sandbox.commands[-1] == "DISPLAY=:1 xdotool mousemove 1023 899 click 1"
    else:
        assert sandbox.requests[-1]["actions"][0]["x"] == 1023
        assert sandbox.requests[-1]["picture"]["max_edge"] == 512
        shoot(session)
        assert size_of((sandbox.trial_paths.agent_dir / "screenshot_ep0.png").read_bytes()) == (512, 450)
    assert "512x450 pixels" in made._build_provider()._prompt_text("Do it.")


def test_a_grid(patched: Make, agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    from harbor.llms.base import LLMResponse

    from tests.harbor.agents import run, started

    patched(COORDINATE_SPACE="normalized_0_999", SCREENSHOT_SIZE="512x450")
    made = agent()
    session = started(made, sandbox)
    provider = made._build_provider()
    text = provider._prompt_text("Do it.")
    assert "0 to 999" in text
    assert "raw desktop pixel" not in text
    step = provider.parse(LLMResponse(content='{"action": {"type": "click", "x": 999, "y": 0}}'))
    slept(monkeypatch)
    run(session.execute(step.action))
    assert sandbox.commands[-1] == "DISPLAY=:1 xdotool mousemove 1023 0 click 1"


@pytest.mark.parametrize(
    ("variables", "kwargs", "says"),
    [
        ({"SCREENSHOT_SIZE": "640x360"}, {"model": "anthropic/claude-sonnet-4-5"}, "screenshot_size=640x360"),
        ({"COORDINATE_SPACE": "normalized_0_999"}, {"model": "anthropic/claude-sonnet-4-5"}, "coordinate_space"),
        ({"KEEP_SCREENSHOTS": "2"}, {"model": "anthropic/claude-sonnet-4-5"}, "keep_screenshots=2"),
        ({"KEEP_SCREENSHOTS": "2"}, {"collect_rollout_details": True}, "token-in-token-out"),
    ],
)
def test_settings_that_do_not_go_together(
    patched: Make, agent: Make, variables: dict[str, str], kwargs: dict[str, Any], says: str
) -> None:
    patched(**variables)
    with pytest.raises(BadSetting) as caught:
        agent(**kwargs)
    assert says in str(caught.value)


def test_it_is_applied_once(patched: Make) -> None:
    from harbor.agents.computer_1.computer_1 import Computer1

    from deskhand.harbor.patch import applied_settings

    patched()
    assert applied_settings() is not None
    once = Computer1._query_litellm, Computer1.run
    patched()
    with pytest.raises(BadSetting, match=r"with other HARBOR_CUA_\* already"):
        patched(KEEP_SCREENSHOTS="2")
    assert (Computer1._query_litellm, Computer1.run) == once
