# ruff: noqa: F811  (fixtures of another file)
"""What an application is given when the launcher starts it."""

from __future__ import annotations

import os

import pytest

from tests.computerd.launchers import (
    Lines,
    computerd,  # noqa: F401
    hand,  # noqa: F401
    launcher,  # noqa: F401
    needs_root,
    running_launcher,
)
from tests.xservers import until


def test_the_application_is_given_nothing_of_the_launchers() -> None:
    with running_launcher(start=False) as launcher:
        launcher.environment.update(
            MY_API_KEY="secret", SOME_TOKEN="secret", DB_PASSWORD="secret", COMPUTERD_LAUNCHER="secret",
            DESKHAND_URL="secret", NOTIFY_SOCKET="/secret", LISTEN_FDS="1",
        )  # fmt: skip
        os.umask(old := os.umask(0o077))
        os.umask(0o077)
        try:
            launcher.start()
        finally:
            os.umask(old)
        report = launcher.directory / "home" / "report"
        launcher.entry(
            "spy",
            launcher.script(
                "{ ls -l /proc/self/fd; cat /proc/self/status; umask; pwd; id -u; env; cat /proc/$PPID/cmdline; } > r\n"
                "mv r report\nexec sleep 60\n"
            ),
        )
        held = [launcher.connect() for _ in range(3)]
        lines = Lines(launcher, "spy")
        first = lines.next()
        assert until(report.exists)
        text = report.read_text()
        for one in held:
            one.close()
        lines.close()
    descriptors = [line.split(" -> ")[1] for line in text.splitlines() if " -> " in line]
    assert descriptors[0] == "/dev/null"
    assert not any("pipe" in one or "socket" in one for one in descriptors)
    assert len(descriptors) == 4  # the fourth is the listing's own folder
    fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert fields["SigIgn"] == fields["SigBlk"] == "0000000000000000"
    assert fields["NoNewPrivs"] == "1"
    assert fields["CapEff"] == fields["CapPrm"] == fields["CapInh"] == fields["CapAmb"] == "0000000000000000"
    assert "\n0022\n" in text
    assert f"\n{launcher.directory}/home\n" in text
    assert f"\n{launcher.account.uid}\n" in text
    assert "secret" not in text
    assert "PYTHONPATH" not in text
    assert "NOTIFY_SOCKET" not in text
    assert f"DISPLAY={launcher.server.display}" in text
    assert f"DESKTOP_STARTUP_ID={first['startup_id']}" in text


@pytest.mark.slow
@needs_root
def test_applications_may_gain_privileges_only_when_that_is_asked_for() -> None:
    with running_launcher(None, "--new-privs") as launcher:
        launcher.entry("spy", launcher.script("grep NoNewPrivs /proc/self/status > r; mv r report; exec sleep 60\n"))
        lines = Lines(launcher, "spy")
        report = launcher.directory / "home" / "report"
        assert until(report.exists)
        assert report.read_text().split() == ["NoNewPrivs:", "0"]
        lines.close()
