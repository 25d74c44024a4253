"""Each question can be asked; what it says of right and wrong is right. No time is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.questions import QUESTIONS
from bench.settle.scenarios import SCENARIOS
from bench.sides import PEERS_PYTHON, SYSTEM_PYTHON, Answer, HeldPeer, NotInstalled, Row, in_turns
from PIL import Image, ImageDraw

from bench import growth, launch, resident, run, step, text
from deskhand.testing import window_manager, xvfb


def sides_of(answer: Answer, case: str) -> list[str]:
    return [row.side for row in answer.rows if row.case == case]


def test_in_turns_names_what_is_missing_once() -> None:
    order = []

    def side(name: str) -> float:
        order.append(name)
        if name == "gone":
            raise NotInstalled
        return 2.0 if name == "peer" else 1.0

    answer = Answer("q", "words")
    taken = in_turns({name: lambda name=name: side(name) for name in ("ours", "gone", "peer")}, 2, answer)  # type: ignore
    assert order == ["ours", "gone", "peer", "ours", "peer", "ours", "peer"]
    assert taken == {"ours": [1.0, 1.0], "peer": [2.0, 2.0]}
    assert answer.notes == ["gone is not installed (bench/peers.sh)"]
    answer.add("case", taken, {"ours": [True, True], "peer": [True, False]})
    assert answer.rows == [Row("case", "ours", 1.0, 1.0, 2, 2), Row("case", "peer", 2.0, 2.0, 2, 1)]


def test_a_held_peer() -> None:
    with HeldPeer(sys.executable, "def act(given): return given * 2", {}) as peer:
        seconds, found = peer.ask(21)
        assert found == 42
        assert seconds >= 0
    for python, body in ((sys.executable, "import there_is_no_such_module"), ("/nowhere/python", "")):
        with HeldPeer(python, body, {}) as peer, pytest.raises(NotInstalled):
            peer.ask()


def test_tiles_that_differ() -> None:
    one = Image.new("RGB", (1280, 800), "#102030")
    other = one.copy()
    assert step.differing_tiles(one, other) == []
    other.putpixel((9, 8), (0x10, 0x20, 0x31))  # one bit of one channel
    other.putpixel((1279, 799), (0, 0, 0))
    ImageDraw.Draw(other).rectangle((1190, 0, 1279, 25), "white")  # the panel's clock
    assert step.differing_tiles(one, other) == [161, 15999]


def test_the_words_for_xdotool() -> None:
    assert step.xdotool({"action": "click", "x": 1, "y": 2, "button": "right"})[:4] == ["mousemove", "1", "2", "click"]
    assert step.xdotool({"action": "click", "x": 1, "y": 2, "button": "right"})[-1] == "3"
    assert step.xdotool({"action": "key", "keys": "ctrl+w"}) == ["key", "ctrl+w"]
    assert step.xdotool({"action": "scroll", "x": 1, "y": 2, "dy": 3})[-1] == "5"
    assert step.xdotool({"action": "type", "text": "ls\n"}) == ["type", "ls\n"]
    assert step.xdotool({"action": "move", "x": 1, "y": 2}) == ["mousemove", "1", "2"]


@pytest.mark.parametrize("name", list(text.TEXTS))
def test_texts_have_their_length(name: str) -> None:
    assert len(text.text_of(name)) == text.LENGTH
    assert text.text_of(name).isascii() == (name == "ASCII")


def test_a_run_is_written_drawn_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Answer("q", "some words", facts={"a fact": ["x", "y"]}, notes=["a note"])
    answer.add("one case", {"ours": [1.0], "peer": [7.5]}, {"ours": [True], "peer": [False]})
    monkeypatch.setitem(QUESTIONS, "q", lambda rounds: answer)
    files = [tmp_path / name for name in ("run.json", "chart.png", "page.md")]
    arguments = ["q", "--rounds", "1", "--json", str(files[0]), "--chart", str(files[1]), "--page", str(files[2])]
    assert run.main(arguments) == 0
    read, machine = run.read(files[0])
    assert read == [answer]
    assert machine["cores"] >= 1
    again = tmp_path / "again.md"
    assert run.main(["--from", str(files[0]), "--page", str(again)]) == 0
    page = files[2].read_text()
    assert again.read_text() == page
    by_hand = "# Ours\n\nWords of ours.\n"
    again.write_text(page.replace("# Performance\n", by_hand).replace("a note", "an old note"))
    assert run.main(["--from", str(files[0]), "--page", str(again)]) == 0
    assert again.read_text() == page.replace("# Performance\n", by_hand)
    assert machine["versions"]["deskhand"]
    assert f"xvfb {machine['versions']['xvfb']}" in page
    assert "| one case | 1.00 (1 of 1) | 7.50 (0 of 1) |" in page
    assert "a note" in page
    assert "x, y" in page
    with Image.open(files[1]) as chart:
        colours = {colour for _count, colour in chart.convert("RGB").getcolors(1 << 24) or []}
    assert {(0x4C, 0x9A, 0x5B), (0xC4, 0x48, 0x3C)} <= colours  # right and wrong


def test_an_unknown_question_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(["nonsense"])
    assert ended.value.code == 2
    assert "screenshot" in capsys.readouterr().err


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from deskhand.cli import main; main()", "bench"]
    done = subprocess.run([*command, "nonsense"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    done = subprocess.run(
        [*command, "click", "--rounds", "1", "--json", "b.json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "b.json").read_text())["answers"][0]["question"] == "click"


@pytest.mark.parametrize("name", ["screenshot", "click", "key", "apps", "one-file"])
def test_a_question_is_answered(name: str) -> None:
    answer = QUESTIONS[name](1)
    assert answer.question == name
    assert [row for row in answer.rows if row.side == "ours" and row.ratio == 1.0]
    for case in {row.case for row in answer.rows}:
        assert sides_of(answer, case)[0] == "ours"
    if not Path(PEERS_PYTHON).exists() and name in ("screenshot", "click", "key"):
        assert any("pynput" in note or "mss" in note for note in answer.notes)


@pytest.mark.slow
def test_what_stays_costs_little() -> None:
    answer = resident.ask(1, idle=0.5)
    memory = answer.facts["memory"]
    assert len(memory) == 2
    assert all(0 < found["MiB"] < 80 for found in memory.values())
    assert len({found["X clients"] for found in memory.values()}) == 1  # none is left behind by a step


@pytest.mark.slow
def test_many_desktops_and_many_applications() -> None:
    answer = growth.ask(1, desktops=(1, 2), entries=(10, 20), work=0.5)
    found = {(row.case, row.side): row.ratio for row in answer.rows}
    assert found["a step, over all desktops", "1 desktop"] == found["an entry of the list", "10 entries"] == 1.0
    assert {side for _case, side in found} == {"1 desktop", "2 desktops", "10 entries", "20 entries"}
    assert 0 < answer.facts["steps of the slowest of 2 desktops, the median's being 1"] <= 1


@pytest.mark.long
@pytest.mark.parametrize("kind", ["GTK 3", "GTK 4", "Qt 6", "Tk", "xterm"])
def test_text_is_read_back_from_the_field(kind: str) -> None:
    answer = text.ask(1, (kind,), (False,))
    if any("is not installed" in note and kind in note for note in answer.notes):
        pytest.skip(answer.notes[0])
    ours = [row for row in answer.rows if row.side == "ours"]
    cases = [f"{kind}, ASCII, idle", f"{kind}, mixed, idle", "all fields, ASCII", "all fields, mixed"]
    assert [row.case for row in ours] == cases
    assert ours[0].right == 1


@pytest.mark.slow
def test_a_field_tells_wrong_from_right(tmp_path: Path) -> None:
    from bench.widgets import widget

    from deskhand.hand.hand import Hand

    with (
        xvfb() as server,
        window_manager(server),
        Hand(server.display) as hand,
        widget("Tk", hand, server.env, tmp_path) as field,
    ):
        hand.act({"actions": [{"action": "type", "text": "words"}]})
        assert field.comes_to("words")
        field.clear()
        hand.act({"actions": [{"action": "type", "text": "word"}]})
        assert not field.comes_to("words")
        field.clear()
        hand.act({"actions": [{"action": "type", "text": "wards"}]})
        assert not field.comes_to("words")


@pytest.mark.slow
def test_a_launch_is_compared() -> None:
    answer = launch.ask(1, launch.APPLICATIONS[:1])
    assert answer.notes == [] or "gtk-launch" in answer.notes[0]
    assert sides_of(answer, "mousepad, warm")[0] == "ours"
    assert answer.facts


@pytest.mark.long
def test_steps_are_compared() -> None:
    """Two menus and a command that takes 0.7 s: ours and the fixed ways are right in all, a picture at once is not.

    Ours once got 2 of 3 on a loaded machine, and the cause is not known: do not take the menus out to make it pass.
    """
    answer = step.ask(1, kinds=("apps-menu", "mp-altf", "xt-slow"))
    assert answer.notes == []
    rows = {row.side: row for row in answer.rows if row.case == "all kinds"}
    assert [row.tries for row in rows.values()] == [3, 3, 3, 3]
    assert [rows[side].right for side in (step.OURS, step.HARBOR, step.REFERENCE)] == [3, 3, 3]
    at_once = rows[step.AT_ONCE].right
    assert at_once is not None
    assert at_once < 3


def test_kinds_that_are_left_out_exist() -> None:
    assert set(step.LEFT_OUT) <= set(SCENARIOS)
    assert {"xt-slow", "ff-static", "ff-scroll"} <= set(step.SLOW) & set(SCENARIOS)
    assert Path(SYSTEM_PYTHON).exists()
