"""How the hand gets into a guest: one command there that takes it in on standard input."""

from __future__ import annotations

import functools
import hashlib
import tempfile
from pathlib import Path

from deskhand.hand import build

#: Receives the hand on standard input and unpacks it in a directory that only its user may write to, with its bytecode:
#: most of a start is compiling. For any Python 3, so that one that is too old can say so.
RECEIVE = """
import compileall, hashlib, io, os, shutil, stat, sys, tempfile, zipfile
if sys.version_info < (3, 9):
    sys.exit("python3 there is %d.%d: the hand needs 3.9 or newer" % sys.version_info[:2])
content = sys.stdin.buffer.read()
digest = hashlib.sha256(content).hexdigest()
if digest != sys.argv[1]:
    sys.exit("the hand arrived damaged: %d bytes" % len(content))
directory = os.path.join(tempfile.gettempdir(), "deskhand-hand-%d" % os.geteuid())
try:
    os.mkdir(directory, 0o700)
except FileExistsError:
    found = os.lstat(directory)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        directory = tempfile.mkdtemp(prefix="deskhand-hand-")
path = os.path.join(directory, digest[:16])
if not os.path.isdir(path):
    unfinished = tempfile.mkdtemp(dir=directory)
    zipfile.ZipFile(io.BytesIO(content)).extractall(unfinished)
    compileall.compile_dir(unfinished, quiet=2)
    try:
        os.rename(unfinished, path)
    except OSError:
        shutil.rmtree(unfinished)
print(path)
"""


@functools.cache
def the_hand() -> tuple[bytes, str]:
    """The one-file form, and the SHA-256 of it that ``RECEIVE`` wants as its argument."""
    with tempfile.TemporaryDirectory(prefix="deskhand-") as directory:
        content = Path(build(str(Path(directory) / "hand.pyz"))).read_bytes()
    return content, hashlib.sha256(content).hexdigest()
