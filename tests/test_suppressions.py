"""Whoever silences a checker says why, in the same line or in the line before."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_MARKER = re.compile(r"# (?:type: ignore|noqa)[^#—(-]*(.*)")


def test_every_suppression_has_a_reason():
    bare = []
    for folder in ("agent", "client", "server", "relay", "bench", "tests", "plugins"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            lines = path.read_text().splitlines()
            for number, line in enumerate(lines):
                marker = _MARKER.search(line)
                if (
                    marker
                    and path != Path(__file__)
                    and len(marker[1].split()) < 3
                    and "type ignored: " not in lines[number - 1]
                ):
                    bare.append(f"{path.relative_to(_ROOT)}:{number + 1}: {line.strip()}")
    assert not bare, "\n".join(bare)
