"""Builds the one-file form, ``deskhand-hand.pyz``: a zip of this package that ``python3`` runs (PEP 441).

The same sources give the same bytes: names in order, one fixed date, no build machine's modes, and nothing compressed
(deflate's output differs between versions of zlib; and what is not compressed also starts faster).
"""

from __future__ import annotations

import os
import zipfile
from typing import Iterator, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))
_MAIN = b"""\
import sys

from deskhand_hand.__main__ import main

sys.exit(main())
"""
#: The package's name inside the file: another than ``deskhand``, which may be installed where it runs.
PACKAGE = "deskhand_hand"


def build(target: str = "deskhand-hand.pyz") -> str:
    """Write the one-file form to ``target`` and give its path. The file is replaced whole or not at all."""
    unfinished = f"{target}.{os.getpid()}.tmp"
    try:
        with open(unfinished, "wb") as file:
            file.write(b"#!/usr/bin/env python3\n")
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, content in _contents():
                    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                    info.create_system = 3
                    info.external_attr = 0o644 << 16
                    archive.writestr(info, content)
        os.chmod(unfinished, 0o755)
        os.replace(unfinished, target)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
    return target


def _contents() -> Iterator[Tuple[str, bytes]]:
    yield "__main__.py", _MAIN
    for directory, folders, files in os.walk(_HERE):
        folders[:] = sorted(folder for folder in folders if folder != "__pycache__")
        for name in sorted(files):
            if name.endswith(".py") and name != "one_file.py":
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    yield f"{PACKAGE}/{os.path.relpath(path, _HERE)}", file.read()
