"""The cookie for a display: found among others, and told apart from none."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.hand.errors import NoDisplay
from deskhand.hand.x11 import Connection
from deskhand.hand.x11.auth import (
    FAMILY_LOCAL,
    FAMILY_WILD,
    MIT_MAGIC_COOKIE,
    AuthEntry,
    default_file,
    find_cookie,
    pack_entry,
    read_entries,
)
from deskhand.hand.x11.display_name import parse_display
from deskhand.testing import xvfb

HERE = socket.gethostname().encode()


def entry(
    family: int = FAMILY_LOCAL,
    address: bytes = HERE,
    number: bytes = b"7",
    name: bytes = MIT_MAGIC_COOKIE,
    data: bytes = b"right",
) -> AuthEntry:
    return AuthEntry(family, address, number, name, data)


def write(path: Path, *entries: AuthEntry, cut: int = 0) -> str:
    content = b"".join(pack_entry(one) for one in entries)
    path.write_bytes(content[: len(content) - cut])
    return str(path)


WRONG = [
    entry(address=b"another-host", data=b"wrong host"),
    entry(number=b"8", data=b"wrong number"),
    entry(number=b"77", data=b"wrong number"),
    entry(name=b"XDM-AUTHORIZATION-1", data=b"wrong kind"),
    entry(family=0, address=bytes([192, 0, 2, 1]), data=b"of the network"),
]


@pytest.mark.parametrize(
    "right",
    [
        entry(),
        entry(number=b""),
        entry(family=FAMILY_WILD, address=b""),
        entry(family=FAMILY_WILD, address=b"whatever", number=b""),
    ],
    ids=["local", "any number", "any host", "anything"],
)
def test_the_right_entry_among_many(tmp_path: Path, right: AuthEntry) -> None:
    path = write(tmp_path / "cookies", *WRONG, right, entry(data=b"a later one"))
    cookie, note = find_cookie(parse_display(":7"), path)
    assert cookie == b"right"
    assert path in note


def test_a_display_of_the_network_by_its_address(tmp_path: Path) -> None:
    path = write(
        tmp_path / "cookies",
        entry(data=b"this host's"),
        entry(family=0, address=bytes([192, 0, 2, 1]), data=b"by address"),
        entry(family=6, address=socket.inet_pton(socket.AF_INET6, "2001:db8::1"), data=b"by address 6"),
    )
    assert find_cookie(parse_display("192.0.2.1:7"), path)[0] == b"by address"
    assert find_cookie(parse_display("[2001:db8::1]:7"), path)[0] == b"by address 6"
    assert find_cookie(parse_display("192.0.2.2:7"), path)[0] is None
    assert find_cookie(parse_display("localhost:7"), path)[0] == b"this host's"


def test_an_entry_by_the_loopback_address_is_for_it(tmp_path: Path) -> None:
    path = write(tmp_path / "cookies", entry(family=0, address=bytes([127, 0, 0, 1]), data=b"loopback"))
    assert find_cookie(parse_display("127.0.0.1:7"), path)[0] == b"loopback"
    assert find_cookie(parse_display(":7"), path)[0] is None


def test_only_others(tmp_path: Path) -> None:
    cookie, note = find_cookie(parse_display(":7"), write(tmp_path / "cookies", *WRONG))
    assert cookie is None
    assert "cookies for other displays only" in note


def test_a_file_cut_short_gives_what_is_whole(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", entry(), entry(number=b"8", data=b"second"), cut=3)
    assert find_cookie(parse_display(":7"), whole)[0] == b"right"
    assert find_cookie(parse_display(":8"), whole)[0] is None


def test_what_can_not_be_read_is_said(tmp_path: Path) -> None:
    display = parse_display(":7")
    assert find_cookie(display, str(tmp_path / "none")) == (None, f"there is no cookie file {tmp_path / 'none'}")
    assert "can not be read" in find_cookie(display, str(tmp_path))[1]
    (tmp_path / "empty").touch()
    assert "no cookie" in find_cookie(display, str(tmp_path / "empty"))[1]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        find_cookie(display, str(tmp_path))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_pipe_is_no_hang(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert find_cookie(parse_display(":7"), str(pipe))[0] is None
    writer = os.open(pipe, os.O_RDWR)  # now somebody has it open and says nothing
    try:
        assert find_cookie(parse_display(":7"), str(pipe))[0] is None
    finally:
        os.close(writer)


def test_a_file_of_another_user(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "secret", entry()))
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")
    assert "can not be read (Permission denied)" in find_cookie(parse_display(":7"), str(path))[1]


def test_default_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XAUTHORITY", "/tmp/some")
    assert default_file() == "/tmp/some"
    monkeypatch.delenv("XAUTHORITY")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert default_file() == "/home/somebody/.Xauthority"


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_error(content: bytes) -> None:
    assert (
        b"".join(pack_entry(one) for one in read_entries(content))
        == content[: sum(len(pack_entry(one)) for one in read_entries(content))]
    )


entries = st.builds(
    AuthEntry, st.integers(0, 0xFFFF), st.binary(max_size=9), st.binary(max_size=9), st.binary(max_size=9), st.binary()
)


@given(st.lists(entries, max_size=5))
def test_what_is_packed_is_read(given_entries: list[AuthEntry]) -> None:
    assert list(read_entries(b"".join(pack_entry(one) for one in given_entries))) == given_entries


def test_a_real_server_takes_the_cookie_and_refuses_others(tmp_path: Path) -> None:
    with xvfb(auth=True) as server:
        assert server.xauthority is not None
        with Connection.open(server.display, server.xauthority) as connection:
            connection.sync()
        (right, _wild) = read_entries(Path(server.xauthority).read_bytes())
        number = str(server.number).encode()
        among = write(tmp_path / "among", *WRONG, right._replace(number=b"9999"), right._replace(number=number))
        with Connection.open(server.display, among) as connection:
            connection.sync()
        for path in (
            write(tmp_path / "wrong", right._replace(data=b"0123456789abcdef")),
            write(tmp_path / "short", right._replace(data=right.data[:5])),
            write(tmp_path / "others", *WRONG),
            str(tmp_path / "none"),
        ):
            with pytest.raises(NoDisplay) as caught:
                Connection.open(server.display, path)
            message = str(caught.value)
            assert path in message
            assert server.display in message
            assert "XAUTHORITY" in message
            assert right.data.hex() not in message
            assert "\n" not in message
