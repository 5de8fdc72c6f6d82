"""
Leave for whoever holds it to do a few things with one queue, for a while, without a token.

A signature covers paths, methods, project and end, so nothing is kept; keys derive from the site's secret, one for each
project.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from stoker.model.errors import Invalid

#: How long agents' URLs are good: from two of these to three. Each is made anew when one is over.
AGENTS_PERIOD = timedelta(days=30)
_FORM = "%Y-%m-%dT%H:%M:%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUrl:
    paths: tuple[str, ...]
    methods: tuple[str, ...]
    project: str
    #: UTC, to the second.
    expires: str
    signature: str

    def to_json(self) -> dict[str, Any]:
        return {
            "paths": list(self.paths),
            "methods": list(self.methods),
            "project": self.project,
            "expires": self.expires,
            "signature": self.signature,
        }


class SignedUrls:
    """``purpose``: what is signed for one is worth nothing for another."""

    def __init__(self, secret: bytes, purpose: str = "queues") -> None:
        self._secret = hmac.digest(secret, f"stoker signed urls of {purpose}".encode(), hashlib.sha256)

    def sign(self, project_id: str, paths: Iterable[str], methods: Iterable[str], expires: datetime) -> SignedUrl:
        """``paths`` as Zaqar has them: ``/v2/queues/<name>/messages`` and the like. What lies below is open, too."""
        until = said(expires)
        ordered, verbs = tuple(sorted(paths)), tuple(sorted(methods))
        signature = self._signature(project_id, ordered, verbs, until)
        return SignedUrl(paths=ordered, methods=verbs, project=project_id, expires=until, signature=signature)

    def allows(
        self,
        verb: str,
        path: str,
        *,
        project: str,
        paths: Iterable[str],
        methods: Iterable[str],
        expires: str,
        signature: str,
        now: datetime,
    ) -> bool:
        """Whether this is signed, has not ended, and is for ``verb`` on ``path``."""
        opened, verbs = tuple(sorted(paths)), tuple(sorted(methods))
        try:
            until = moment(expires)
        except Invalid:
            return False
        made = self._signature(project, opened, verbs, until.strftime(_FORM))
        return (
            hmac.compare_digest(made.encode(), signature.encode("utf-8", "replace"))
            and now < until
            and verb in verbs
            and any(path == each or path.startswith(f"{each}/") for each in opened)
        )

    def _signature(self, project: str, paths: Iterable[str], methods: Iterable[str], expires: str) -> str:
        key = hmac.digest(self._secret, project.encode("utf-8", "replace"), hashlib.sha256)
        # Zaqar joins with these two characters, a backslash and an n, rather than with a new line.
        text = r"\n".join((",".join(paths), ",".join(methods), project, expires))
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def for_agents(secret: bytes) -> SignedUrls:
    """Of the queues that stand for resources: these end with the resource, whatever time they say."""
    return SignedUrls(secret, "agents' queues")


def agents_until(resource_id: str, now: datetime) -> datetime:
    """
    When the URL ends that a resource's agent is given now. It is the same for a whole period, so that documents do not
    change all the time; whose period begins when differs, so that they do not all change at once.
    """
    period = int(AGENTS_PERIOD.total_seconds())
    begins = int.from_bytes(hashlib.sha256(resource_id.encode()).digest()[:4], "big") % period
    count = (int(now.timestamp()) - begins) // period
    return datetime.fromtimestamp((count + 3) * period + begins, UTC)


def said(at: datetime) -> str:
    """As signed URLs say when they end."""
    return at.astimezone(UTC).strftime(_FORM)


def moment(text: str) -> datetime:
    """ISO 8601, taken for UTC where no zone is said. Raises Invalid."""
    try:
        found = datetime.fromisoformat(text) if "-" in text else None
        if found is not None:
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Invalid(f"expires must be a time like 2030-01-31T23:59:59, not {text!r:.100}")
