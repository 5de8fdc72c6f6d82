"""
Signed URLs: access to one queue for a limited time, with chosen methods and without a token.

A signature covers paths, methods, project and expiry, so Stoker stores nothing. The keys derive from the site secret,
one key for each project.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from stoker.model.errors import Invalid
from stoker.model.secrets import CREDENTIAL_PREFIX

#: The URL of an agent is valid for two to three of these periods. It is replaced at the end of each period.
AGENTS_PERIOD = timedelta(days=30)
_FORM = "%Y-%m-%dT%H:%M:%S"


class SignedUrl(Struct, frozen=True, kw_only=True):
    """
    A signature and all values that it covers, as in Zaqar's responses.

    It permits methods on paths until a time, without a login.
    """

    paths: tuple[str, ...]
    methods: tuple[str, ...]
    project: str
    #: UTC, in whole seconds.
    expires: str
    signature: str


class SignedUrls:
    """Signs and verifies URLs. Signatures for one ``purpose`` are invalid for every other."""

    #: The purpose of URLs for the queues of resources, which are deleted with their resource, whatever the expiry.
    AGENTS = "agents' queues"

    def __init__(self, secret: bytes, purpose: str = "queues") -> None:
        self._secret = hmac.digest(secret, f"stoker signed urls of {purpose}".encode(), hashlib.sha256)

    def sign(self, project_id: str, paths: Iterable[str], methods: Iterable[str], expires: datetime) -> SignedUrl:
        """Sign ``paths`` in Zaqar's format, such as ``/v2/queues/<name>/messages``. Includes all paths below them."""
        until = format_time(expires)
        ordered, verbs = tuple(sorted(paths)), tuple(sorted(methods))
        signature = self._signature(project_id, ordered, verbs, until)
        return SignedUrl(paths=ordered, methods=verbs, project=project_id, expires=until, signature=signature)

    def allows(self, url: SignedUrl, verb: str, path: str, now: datetime) -> bool:
        """Whether the signature of ``url`` is valid, has not expired, and permits ``verb`` on ``path``."""
        try:
            until = moment(url.expires)
        except Invalid:
            return False
        expected = self._signature(url.project, sorted(url.paths), sorted(url.methods), until.strftime(_FORM))
        return (
            hmac.compare_digest(expected.encode(), url.signature.encode("utf-8", "replace"))
            and now < until
            and verb in url.methods
            and any(path == root or path.startswith(f"{root}/") for root in url.paths)
        )

    def _signature(self, project: str, paths: Iterable[str], methods: Iterable[str], expires: str) -> str:
        key = hmac.digest(self._secret, project.encode("utf-8", "replace"), hashlib.sha256)
        # Zaqar joins the parts with the two characters backslash and n, not with a newline.
        text = r"\n".join((",".join(paths), ",".join(methods), project, expires))
        return CREDENTIAL_PREFIX + hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def agents_until(resource_id: str, now: datetime) -> datetime:
    """
    The expiry of the URL that a resource's agent gets at ``now``.

    The expiry changes once in a period, so that documents do not change all the time. Periods of different resources
    begin at different times, so that their documents do not all change at once.
    """
    period = int(AGENTS_PERIOD.total_seconds())
    begins = int.from_bytes(hashlib.sha256(resource_id.encode()).digest()[:4], "big") % period
    count = (int(now.timestamp()) - begins) // period
    return datetime.fromtimestamp((count + 3) * period + begins, UTC)


def format_time(at: datetime) -> str:
    """Format a time as in signed URLs."""
    return at.astimezone(UTC).strftime(_FORM)


def moment(text: str) -> datetime:
    """Parse an ISO 8601 time; without a zone it is UTC. Raises Invalid."""
    try:
        time = datetime.fromisoformat(text) if "-" in text else None
        if time is not None:
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Invalid(f"expires must be a time like 2030-01-31T23:59:59, not {text!r:.100}")
