"""S8, S18: a picture that stays within its limits, and what is listed by a service without a log-in's environment."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deskhand.hand.picture import MAX_BYTES, MAX_EDGE
from deskhand.testing import XServer, xvfb
from tests.cases.ways import Way
from tests.commands import act, deskhand
from tests.x_windows import make_entry

pytestmark = pytest.mark.slow


# ---- S8: a picture that is too large for who gets it


def paint_noise(server: XServer, width: int, height: int) -> None:
    """Colours that no encoder makes small, on the root window."""
    # Untyped, and it fills its module when it connects.
    xcffib: Any = pytest.importorskip("xcffib")
    xproto: Any = pytest.importorskip("xcffib.xproto")
    connection = xcffib.connect(display=server.display)
    try:
        root = connection.get_setup().roots[0].root
        context = connection.generate_id()
        connection.core.CreateGC(context, root, 0, [])
        rows = 200_000 // (4 * width)  # a request has 262,140 bytes at most
        for y in range(0, height, rows):
            count = min(rows, height - y)
            noise = random.Random(y).randbytes(4 * width * count)
            connection.core.PutImage(
                xproto.ImageFormat.ZPixmap, root, context, width, count, 0, y, 0, 24, len(noise), noise
            )
        connection.core.GetInputFocus().reply()
    finally:
        connection.disconnect()


@pytest.mark.parametrize("wish", [True, {"format": "jpeg"}, {"format": "webp"}, {"max_edge": MAX_EDGE}], ids=str)
def test_s8_a_picture_of_noise_on_a_huge_screen_keeps_its_limits(way: Way, tmp_path: Path, wish: object) -> None:
    path = tmp_path / "noise"
    with xvfb(4880, 2560) as huge:
        server = way.reach(huge)
        paint_noise(huge, 4880, 2560)
        request = {"actions": [{"action": "screenshot"}], "picture": wish}
        answer = deskhand(server, "act", "--json", "-o", str(path), stdin=request)
        assert answer.status == 0, answer
        facts = answer.json["picture"]
        assert path.stat().st_size <= MAX_BYTES
        with Image.open(path) as picture:
            assert max(picture.size) <= MAX_EDGE
            assert picture.size == (facts["width"], facts["height"])
        assert (facts["screen"], facts["region"]) == ([4880, 2560], [0, 0, 4880, 2560])
        assert facts["scale"] == pytest.approx(facts["width"] / 4880, abs=0.001)
        # What is seen at its far corner is still the pixel there.
        space = {"picture": [facts["width"], facts["height"]]}
        corner = {"action": "move", "x": facts["width"] - 1, "y": facts["height"] - 1}
        (moved,) = act(server, corner, space=space).json["results"]
        assert abs(moved["point"][0] - 4879) <= 2 / facts["scale"]
        assert abs(moved["point"][1] - 2559) <= 2 / facts["scale"]


# ---- S18: what flatpak and snap export


def test_s18_exports_are_listed_by_a_service_without_the_logins_environment(way: Way, tmp_path: Path) -> None:
    exports = tmp_path / ".local" / "share" / "flatpak" / "exports" / "share" / "applications"
    exports.mkdir(parents=True)
    make_entry(exports, "org.example.Exported", "true", name="Exported")
    with xvfb() as display:
        bare = {"DISPLAY": display.display, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        listed = deskhand(way.reach(display, bare), "apps", "--json", "--verbose", verbose=True)
    assert listed.status == 0, listed
    assert "org.example.Exported" in {app["id"] for app in listed.json}
    assert f"searched: {exports}" in listed.error.splitlines()
