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
from datetime import UTC, datetime

from stoker.model.errors import Invalid

_FORM = "%Y-%m-%dT%H:%M:%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUrl:
    paths: tuple[str, ...]
    methods: tuple[str, ...]
    project: str
    #: UTC, to the second.
    expires: str
    signature: str


class SignedUrls:
    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"stoker signed urls of queues", hashlib.sha256)

    def sign(self, project_id: str, paths: Iterable[str], methods: Iterable[str], expires: datetime) -> SignedUrl:
        """``paths`` as Zaqar has them: ``/v2/queues/<name>/messages`` and the like. What lies below is open, too."""
        until = expires.astimezone(UTC).strftime(_FORM)
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
        said, verbs = tuple(sorted(paths)), tuple(sorted(methods))
        try:
            until = moment(expires)
        except Invalid:
            return False
        made = self._signature(project, said, verbs, until.strftime(_FORM))
        return (
            hmac.compare_digest(made.encode(), signature.encode("utf-8", "replace"))
            and now < until
            and verb in verbs
            and any(path == each or path.startswith(f"{each}/") for each in said)
        )

    def _signature(self, project: str, paths: Iterable[str], methods: Iterable[str], expires: str) -> str:
        key = hmac.digest(self._secret, project.encode("utf-8", "replace"), hashlib.sha256)
        # Zaqar joins with these two characters, a backslash and an n, rather than with a new line.
        text = r"\n".join((",".join(paths), ",".join(methods), project, expires))
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def moment(text: str) -> datetime:
    """ISO 8601, taken for UTC where no zone is said. Raises Invalid."""
    try:
        found = datetime.fromisoformat(text) if "-" in text else None
        if found is not None:
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Invalid(f"expires must be a time like 2030-01-31T23:59:59, not {text!r:.100}")
