"""``deskhand view``: an address, or why there is none."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

from deskhand.testing import XServer
from tests.commands import deskhand, environment
from tests.computerd.daemons import daemon, write_token


def test_the_address_opens_the_page(display: XServer, tmp_path: Path) -> None:
    with daemon(display, tmp_path) as running:
        words = ["view", "--url", running.url, "--token-file", str(running.token_file)]
        address = deskhand(environment(None), *words).text
        assert address.startswith(f"{running.url}/live?ticket=")
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert "deskhand_live_" in answer.headers["Set-Cookie"]
        told = deskhand(environment(None), *words, "--see-only", "--json").json
        assert told["expires_in"] == 60
        assert told["control"] is False
        assert told["url"].startswith(f"{running.url}/live?ticket=")
        by_environment = {"DESKHAND_URL": running.url, "DESKHAND_TOKEN_FILE": str(running.token_file)}
        assert "/live?ticket=" in deskhand(environment(None, **by_environment), "view").text
        wrong = write_token(tmp_path)
        refused = deskhand(environment(None), "view", "--url", running.url, "--token-file", str(wrong))
        assert refused.status == 1
        assert "token is missing or wrong" in refused.error


def test_what_can_not_be(tmp_path: Path) -> None:
    token = str(write_token(tmp_path))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
        for words, word in (
            (["--url", nobody, "--token-file", token], "deskhand serve"),
            (["--url", nobody], "--token-file"),
            (["--url", nobody, "--token-file", str(tmp_path / "none")], "can not be read"),
            (["--url", "unix:/run/computerd.sock", "--token-file", token], "browser"),
            (["--url", "nonsense", "--token-file", token], "browser"),
        ):
            answer = deskhand(environment(None), "view", *words)
            assert answer.status != 0
            assert word in answer.error
