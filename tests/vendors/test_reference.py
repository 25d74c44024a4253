"""The committed table of verbs is the adapters' own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_vendors_md_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "tools/vendor_reference.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_sdk_is_imported() -> None:
    code = (
        "import sys; from deskhand.vendors import ADAPTERS, load; [load(name)((1280, 800)) for name in ADAPTERS];"
        "print([n for n in ('anthropic', 'openai', 'google', 'pydantic', 'PIL', 'pyautogui') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
