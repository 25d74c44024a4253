"""Which pool settings name, and that it is one for all who ask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deskhand.errors import SetupError
from deskhand.fleet import AddressPool, Options, SocketPool
from deskhand.fleet.named import Named
from deskhand.testing.batches import run


def test_settings_that_do_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="give one pool"):
        Named.of(pool="default", size=2)
    with pytest.raises(SetupError, match="give one pool"):
        Named.of(ray="auto", addresses=[])
    with pytest.raises(SetupError, match="can not be read"):
        Named.of(addresses=str(tmp_path / "none.json"))
    for wrong in ([{"uri": "http://127.0.0.1:1"}], ["http://127.0.0.1:1"], 7):
        with pytest.raises(SetupError, match="addresses are a list"):
            Named.of(addresses=wrong)  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="the list of addresses is empty"):
        Named.of(addresses=[])
    for own in ({"size": 0}, {"sise": 1}, {"size": 1, "isolation": "none"}, {"size": 1, "screen": "big"}):
        with pytest.raises(SetupError):
            Named.of(**own)


def test_what_is_named(tmp_path: Path) -> None:
    listed = tmp_path / "addresses.json"
    listed.write_text(json.dumps([{"url": "http://127.0.0.1:1", "shell": ["docker", "exec", "-i", "one"]}]))
    assert Named.of(addresses=str(listed)).addresses[0].shell == ("docker", "exec", "-i", "one")
    assert Named.of() == Named(pool="default")
    assert Named.of(ray="auto") == Named(pool="default", ray="auto")
    own = Named.of(size=2, screen="800x600", see=["/srv"])
    assert own.own == Options(size=2, screen=(800, 600), isolation="bwrap", see=("/srv",))


def test_all_who_ask_get_the_same() -> None:
    async def work() -> None:
        here = await Named.of(pool="some").open()
        assert isinstance(here, SocketPool)
        assert await Named.of(pool="some").open() is here
        assert await Named.of(pool="other").open() is not here
        there = await Named.of(addresses=[{"url": "http://127.0.0.1:1", "token": "x"}]).open()
        assert isinstance(there, AddressPool)

    run(work())
    with pytest.raises(SetupError, match="is no name of a fleet"):
        run(Named.of(pool="no name").open())
