"""Settings that keep a desktop of ours still, and tell when it is not."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from deskhand.desktop.first_starts import first_start_files
from deskhand.desktop.sessions.xfce import XFCE


@pytest.mark.skipif(not Path("/etc/xdg/xfce4/panel/default.xml").exists(), reason="xfce4-panel is not installed")
def test_no_panel_hides() -> None:
    (panel,) = (content for path, content in XFCE.files().items() if path.endswith("xfce4-panel.xml"))
    hides = list(ElementTree.fromstring(panel).iterfind(".//property[@name='autohide-behavior']"))
    assert hides
    assert {one.get("value") for one in hides} == {"0"}


def test_firefox_shows_that_it_loads() -> None:
    """GTK's animations are off, and with them, unless it is told otherwise, the throbber of a tab that loads."""
    preferences = first_start_files()[".mozilla/firefox/default/user.js"]
    assert 'user_pref("ui.prefersReducedMotion", 0);' in preferences.splitlines()
    assert 'user_pref("general.smoothScroll", false);' in preferences.splitlines()
