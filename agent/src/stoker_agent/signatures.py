"""
Verifies documents that arrive through an object store or a queue, where third parties could forge them.

``stoker.servers.signatures`` signs the documents. The revision of the last accepted document is stored on disk, so
older documents are refused after a restart too.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from pathlib import Path
from typing import Any, Callable, Dict

from stoker_agent.files import write_json
from stoker_agent.web import Unreachable

SECTION, HMAC = "stoker-signature", "hmac"
_PURPOSE = b"stoker documents"
_log = logging.getLogger("stoker-agent")


class Unverified(Unreachable):
    """The document has no valid signature for this server, or is older than an accepted one."""


class Verifier:
    """
    Verifies documents with the key that derives from ``credential``.

    ``credential`` is ``<server id>.<secret>``: the agent's key, or the document key from the server's user data.
    ``state`` is the directory for the accepted revision. ``on_refused`` receives the source's name and the reason of
    each refusal.
    """

    def __init__(self, credential: str, state: Path, on_refused: Callable[[str, str], None]) -> None:
        self.server_id = credential.partition(".")[0]
        self._key = hmac.new(credential.encode("utf-8", "surrogateescape"), _PURPOSE, hashlib.sha256).digest()
        self._path = state / "accepted-document.json"
        self._on_refused = on_refused
        self._accepted = self._read()

    def revision(self, document: Any, source: str) -> int:
        """Return the revision of a genuine and current document. Raises Unverified."""
        try:
            return self._check(document)
        except Unverified as error:
            self._on_refused(source, str(error))
            raise

    def accept(self, revision: int) -> None:
        """Store ``revision``. Older documents are refused afterwards."""
        if revision <= self._accepted:
            return
        self._accepted = revision
        try:
            write_json(self._path, {"server_id": self.server_id, "revision": revision})
        except OSError as error:
            _log.error("revision.not_stored: cannot store the revision of the last document: %s", error)

    def _check(self, document: Any) -> int:
        section = document.get(SECTION) if isinstance(document, dict) else None
        if not isinstance(section, dict):
            raise Unverified("the document is not signed")
        if section.get("server_id") != self.server_id:
            raise Unverified(f"the document is signed for another server ({section.get('server_id')!r:.80})")
        revision, signature = section.get("revision"), section.get(HMAC)
        if not isinstance(signature, str) or not isinstance(revision, int):
            raise Unverified("the document's signature is incomplete")
        try:
            expected = self._signature(document, section)
        except (ValueError, RecursionError):
            raise Unverified("the document cannot be read") from None
        if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")):
            raise Unverified("the document was altered, or signed with another key")
        if revision < self._accepted:
            raise Unverified(f"the document is older ({revision}) than the last one accepted ({self._accepted})")
        return revision

    def _signature(self, document: Dict[str, Any], section: Dict[str, Any]) -> str:
        """Return the HMAC of the document without its signature, in the canonical form that the server signs."""
        rest = {name: value for name, value in section.items() if name != HMAC}
        text = json.dumps({**document, SECTION: rest}, sort_keys=True, separators=(",", ":"))
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    def _read(self) -> int:
        """Return the stored revision, or 0 if none is stored for this server."""
        try:
            kept = json.loads(self._path.read_text())
            return int(kept["revision"]) if kept["server_id"] == self.server_id else 0
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.error("revision.unreadable: cannot read %s: %s: older documents may be accepted", self._path, error)
            return 0
