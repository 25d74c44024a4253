"""The token of a status page: one for all pages of a name, and gone with the last of a fleet that has ended."""

from __future__ import annotations

import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from deskhand.errors import SetupError
from deskhand.fleet.page.token import Token, token_file

TOGETHER = 8


def test_those_that_begin_together_have_one(name: str) -> None:
    begin = Barrier(TOGETHER)

    def made(_: int) -> Token:
        begin.wait()
        return Token(name)

    with ThreadPoolExecutor(TOGETHER) as threads:
        for _ in range(50):
            tokens = list(threads.map(made, range(TOGETHER)))
            assert {token.text for token in tokens} == {Path(token_file(name)).read_text().strip()}
            for token in tokens:
                token.close()
            os.unlink(token_file(name))


def test_some_begin_while_others_end_for_good(name: str) -> None:
    begin = Barrier(TOGETHER)

    def one(_: int) -> None:
        begin.wait()
        for _ in range(50):
            token = Token(name)
            assert Path(token.path).read_text().strip() == token.text, "it is there for as long as it is in use"
            token.remove()

    with ThreadPoolExecutor(TOGETHER) as threads:
        list(threads.map(one, range(TOGETHER)))
    assert not os.path.exists(token_file(name))


def test_it_is_for_its_owner_alone(name: str) -> None:
    token = Token(name)
    assert stat.S_IMODE(os.stat(token.path).st_mode) == 0o600
    assert [entry for entry in os.listdir(os.path.dirname(token.path)) if entry.startswith(".")] == []
    token.close()
    assert Token(name).text == token.text, "it stays, unless it ended for good"


def test_it_goes_with_the_last_page_that_ends_for_good(name: str) -> None:
    first, second = Token(name), Token(name)
    first.remove()
    assert os.path.exists(token_file(name)), "another page has it"
    second.remove()
    assert not os.path.exists(token_file(name))
    second.remove()


def test_nothing_else_is_removed(name: str) -> None:
    mine, other = "put-there-by-hand-0123", Token(f"{name}-2")
    Path(token_file(name)).write_text(mine + "\n")
    token = Token(name)
    assert token.text == mine
    token.remove()
    assert Path(token_file(name)).read_text().strip() == mine

    os.unlink(token_file(name))
    token = Token(name)
    os.unlink(token_file(name))
    Path(token_file(name)).write_text("fleet-but-another-one-0123")
    token.remove()
    assert os.path.exists(token_file(name)), "another file has taken its place"
    assert os.path.exists(other.path)
    other.remove()


def test_what_can_not_be_used_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(token_file(name))
    path.write_text("short")
    with pytest.raises(SetupError, match="holds no token of 16 characters or more"):
        Token(name)
    path.unlink()
    path.symlink_to("/nowhere")
    with pytest.raises(SetupError, match="leads to a file that is not there"):
        Token(name)
    path.unlink()
    Token(name).close()
    monkeypatch.setattr("deskhand.fleet.page.token._LOCKED", 0.0)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(SetupError, match="stays locked by another process"):
            Token(name)
