"""
Signatures of documents that pass through an object store or a messaging service.

``stoker_agent.signatures`` verifies them. A signed document has one more section, which the upstream agent ignores: the
server's id, a revision that only increases, and an HMAC-SHA256 over the canonical JSON of everything else. A service
may therefore reformat the JSON. The key derives from the server's agent key, so that no other secret has to be
distributed or stored.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

#: Name of the section, and its key for the HMAC in hexadecimal.
SECTION, HMAC = "stoker-signature", "hmac"
_PURPOSE = b"stoker documents"


def sign(document: Mapping[str, Any], *, agent_key: str, server_id: str, revision: int) -> dict[str, Any]:
    """
    Return the document with its signature. ``agent_key``: the server's key (``Keys.present``) of the current
    generation.
    """
    # JSON changes some values, such as tuples and numeric keys. The signature applies to the values that arrive.
    plain = json.loads(json.dumps(document))  # noqa: TID251 — not from outside
    section = {"server_id": server_id, "revision": revision}
    key = hmac.digest(agent_key.encode(), _PURPOSE, hashlib.sha256)
    signature = hmac.new(key, _canonical({**plain, SECTION: section}), hashlib.sha256).hexdigest()
    return {**plain, SECTION: {**section, HMAC: signature}}


def _canonical(value: Any) -> bytes:
    """Return JSON with sorted keys, without blanks, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
