"""A Return that submits what was just typed is not lost: GTK's file dialog drops one that comes at once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deskhand.hand.hand import Hand
from deskhand.testing import XServer

RETURN = {"action": "key", "keys": "Return"}


@pytest.fixture
def dialog(openbox_display: XServer, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    zenity = subprocess.Popen(
        ["zenity", "--file-selection", "--save", "--title", "Save it"],
        env=openbox_display.env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield zenity
    finally:
        zenity.kill()
        zenity.wait()
        assert zenity.stdout is not None
        zenity.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "typing",
    [
        pytest.param([{"action": "type", "text": "PATH\n"}], id="newline in the text"),
        pytest.param([{"action": "type", "text": "PATH"}, RETURN], id="a key after the text"),
    ],
)
def test_a_save_dialog_takes_the_name(
    dialog: subprocess.Popen[str], openbox_display: XServer, tmp_path: Path, typing: list[dict[str, object]]
) -> None:
    path = tmp_path / "note.txt"
    with Hand(openbox_display.display) as hand:
        window = {"action": "wait_window", "title": "Save it", "focused": True}
        actions = [window, {"action": "key", "keys": "ctrl+a"}]
        for action in typing:
            actions.append(
                {**action, **({"text": str(action["text"]).replace("PATH", str(path))} if "text" in action else {})}
            )
        answer, _ = hand.act({"actions": actions})
    assert answer["ok"], answer
    assert dialog.wait(20) == 0
    assert dialog.stdout is not None
    assert dialog.stdout.read().strip() == str(path)
