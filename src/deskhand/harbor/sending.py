"""A file's way into the sandbox: Harbor's upload, and where that does not work, its pieces through exec."""

from __future__ import annotations

import asyncio
import base64
import shlex
import tempfile
import zlib

from harbor.agents.computer_1.runtime import RuntimeRequestError

from deskhand.harbor.drivers.driver import Sandbox
from deskhand.harbor.errors import BAD_GATEWAY

#: Base64 in one command: a shell command's argument has 128 KiB at most (Linux, MAX_ARG_STRLEN).
LONGEST_ARGUMENT = 96 << 10
#: Seconds that an upload gets, and each piece.
_UPLOAD, _PIECE = 120, 60
_JOIN = """
import base64, os, sys, zlib
arrived, target = sys.argv[1:]
with open(arrived, "rb") as pieces, open(arrived + ".whole", "wb") as whole:
    whole.write(zlib.decompress(base64.b64decode(pieces.read())))
os.replace(arrived + ".whole", target)
os.remove(arrived)
"""


async def send_file(sandbox: Sandbox, content: bytes, target: str) -> None:
    """Put ``content`` into the sandbox as ``target``, whose directory is there.

    Raises:
        RuntimeRequestError: It can not be uploaded, and there is no ``python3`` that joins the pieces, or no space.
        SandboxLost: See there.
    """
    if sandbox.uploads:
        with tempfile.NamedTemporaryFile(prefix="deskhand-") as file:
            file.write(content)
            file.flush()
            try:
                await asyncio.wait_for(sandbox.environment.upload_file(file.name, target), _UPLOAD)
                return
            except Exception as error:
                sandbox.no_uploads(f"{type(error).__name__}: {error}")
    await _send_pieces(sandbox, content, target)


async def _send_pieces(sandbox: Sandbox, content: bytes, target: str) -> None:
    text = base64.b64encode(zlib.compress(content, 9)).decode("ascii")
    arrived = f"{target}.pieces"
    place = shlex.quote(arrived)
    or_nothing = f"{{ rm -f {place} {place}.whole; exit 1; }}"
    for start in range(0, len(text), LONGEST_ARGUMENT):
        piece = text[start : start + LONGEST_ARGUMENT]
        await _run(sandbox, f"printf %s {piece} {'>>' if start else '>'} {place} || {or_nothing}", target)
    join = ["python3", "-c", _JOIN, arrived, target]
    await _run(sandbox, f"{shlex.join(join)} || {or_nothing}", target)


async def _run(sandbox: Sandbox, command: str, target: str) -> None:
    finished = await sandbox.command(command, timeout_sec=_PIECE, label="send a file")
    if finished.return_code != 0:
        lines = (finished.stderr or "").strip().splitlines() or [f"exit status {finished.return_code}"]
        raise RuntimeRequestError("send a file", BAD_GATEWAY, f"{target} can not be written there: {lines[-1][:300]}")
