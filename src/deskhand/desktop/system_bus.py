"""A system bus with nobody on it, for a session that can not do without one (dbus-daemon(1), Configuration File).

What asks it for logind, polkit or NetworkManager is told that there is none. The machine's own bus, where there is
one, is no desktop's of ours to ask to suspend, or to lock sessions with.
"""

from __future__ import annotations

import os

# No service directories: nothing is started by being asked for.
_CONFIGURATION = """<busconfig>
  <listen>{address}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


def write_configuration(path: str, address: str) -> None:
    """Write the configuration of a bus that listens at ``address``, readable by whoever runs it."""
    with open(path, "x", encoding="utf-8") as file:
        file.write(_CONFIGURATION.format(address=address))
    os.chmod(path, 0o644)
