"""The base classes of transports: sources of documents and senders of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from stoker_agent.config import Config
from stoker_agent.keystone import LoginRejected
from stoker_agent.programs import parse_seconds
from stoker_agent.reports import REPORT
from stoker_agent.runs import is_id
from stoker_agent.signatures import Verifier
from stoker_agent.web import Answer, Unreachable, Web

#: The name of Stoker's channel, which has no section.
STOKER = "stoker"
Entries = List[Mapping[str, Any]]
#: Keys of a section that the machine's owner adds locally. Documents never contain them.
LOCAL = ("ca_certificate", "ca_file", "timeout")


class Document(NamedTuple):
    """The runs of this server. ``collect`` is the document's ``os-collect-config``, empty if it has none."""

    entries: Entries
    collect: Mapping[str, Any]
    #: Whether the document has a list of runs. A document without one withdraws no active run.
    lists: bool = False
    #: The number of runs that may be active at the same time.
    concurrency: int = 1
    #: Bytes per output stream that the server keeps.
    log_bytes: int = 8 * 1024 * 1024
    #: The configs to check; only Stoker's own document lists them.
    checks: Sequence[Mapping[str, Any]] = ()


class Making(NamedTuple):
    """The common arguments of sources, besides their sections."""

    config: Optional[Config] = None
    hooks: Path = Path()
    ca_file: Optional[str] = None
    #: Verifies published documents; with None, the agent has no key and accepts them unverified.
    verifier: Optional[Verifier] = None


class Source:
    """
    Fetches documents by one metadata transport. ``section`` has its settings in os-collect-config.

    A source whose service cannot tell whether the document has changed implements ``read`` and ``parse``; others
    override ``fetch`` and ``reset``::

        class File(Source):
            name = "file"

            def __init__(self, section, making):
                super().__init__(section, making)
                self._path = Path(section["path"])

            def read(self):
                return self._path.read_bytes()

            def parse(self, content):
                return document(parse_json(content))
    """

    name = ""
    #: The required keys of the section.
    needed: Tuple[str, ...] = ()
    #: Seconds until the next ``fetch``, if the service states them; None: they grow until the document changes.
    pause: Optional[float] = None

    def __init__(self, section: Mapping[str, Any], making: Making) -> None:
        self._web = Web(ca_file(section, making.ca_file))
        self._seconds = seconds(section)
        self._verifier = making.verifier
        #: What ``read`` returned for the last document.
        self._last: Any = None

    @classmethod
    def missing(cls, section: Mapping[str, Any]) -> List[str]:
        """Return the required keys that the section lacks."""
        return [key for key in cls.needed if section.get(key) in (None, "", [])]

    def fetch(self, wait: float) -> Optional[Document]:
        """
        Return the newest document, or None if it did not change since the last call.

        A source with long polls waits up to ``wait`` seconds for a change. Raises Unreachable, or its subclass Refused
        if an early retry is pointless.
        """
        content = self.read()
        if content == self._last:
            return None
        parsed = self.parse(content)
        self._last = content
        return parsed

    def reset(self) -> None:
        """Make the next ``fetch`` return the document even if it did not change."""
        self._last = None

    def read(self) -> Any:
        """Return what the service has now. Raises Unreachable."""
        raise NotImplementedError

    def parse(self, content: Any) -> Document:
        """Return the document in what ``read`` has returned. Raises Unreachable."""
        raise NotImplementedError

    def close(self) -> None:
        """Close connections. A later ``fetch`` opens them again."""
        self._web.close()


def document(data: Any) -> Document:
    """
    Parse a server's metadata, already decoded from JSON. Entries that are not maps with the id of a run are ignored.

    Raises Unreachable if ``data`` is not a map.
    """
    if not isinstance(data, dict):
        raise Unreachable("the document is no map")
    entries, collect = data.get("deployments"), data.get("os-collect-config")
    return Document(
        [entry for entry in _maps(entries) if is_id(entry.get("id"))],
        collect if isinstance(collect, dict) else {},
        isinstance(entries, list),
        _whole(data.get("concurrency"), Document._field_defaults["concurrency"]),
        _whole(data.get("max_log_bytes"), Document._field_defaults["log_bytes"]),
        _maps(data.get("checks")),
    )


def _maps(value: Any) -> Entries:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def read_carried(data: Any, verifier: Optional[Verifier], source: str) -> Document:
    """
    Verify and parse a document that was read from an object or a queue.

    Without a verifier, the document is accepted unverified. An empty map means that no document was published yet.
    Raises Unverified, or Unreachable as ``document`` does.
    """
    if verifier is not None and data != {}:
        verifier.accept(verifier.revision(data, source))
    return document(data)


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else default


def parse_json(text: bytes) -> Any:
    """Decode JSON. Raises Unreachable."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreachable(f"the document cannot be read: {text[:100]!r}") from None


def seconds(section: Mapping[str, Any]) -> float:
    """Return the time limit of a call in seconds: the section's ``timeout``, between 1 and 600, by default 10."""
    return min(600.0, max(1.0, parse_seconds(section.get("timeout"), 10.0)))


def ca_file(section: Mapping[str, Any], default: Optional[str]) -> Optional[str]:
    """Return the path of the section's CA certificate, or ``default``."""
    path = section.get("ca_certificate") or section.get("ca_file")
    return str(path) if path else default


#: Bytes of a report for the run's id.
_NAME = 128


class Sender:
    """
    Sends results to one target by one signal transport, which ``post`` implements::

        class WebhookSignal(Sender):
            def post(self, id, values):
                return self._web.call("POST", self._url, json.dumps(values).encode(), JSON)

    ``place`` is the target's host. If the target does not answer, its other results wait, too.
    """

    #: Whether the target expects a failure report after it refuses a result.
    wants_failure_report = False
    #: Largest report in bytes that the target accepts.
    limit = REPORT - _NAME

    def __init__(self, place: str) -> None:
        self.place = place

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """
        Send the result of the run ``id``.

        Returns None if the target accepted the result or does not want it, else the reason of a permanent refusal, such
        as a rejected login. Raises Unreachable for a retry; its subclass Busy means that other results may still be
        accepted.
        """
        try:
            # Stoker detects late results of an earlier run by the id; Heat ignores it.
            return self.post(id, {**values, "deploy_config_id": id}).refusal
        except LoginRejected as error:
            return str(error)

    def post(self, id: str, values: Mapping[str, Any]) -> Answer:
        """Send the result of the run ``id`` once and return the answer. Raises Unreachable."""
        raise NotImplementedError


class NoSender(Sender):
    """Refuses every result with ``reason``, because the agent has no means to send them."""

    def __init__(self, reason: str) -> None:
        super().__init__("none")
        self._reason = reason

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """Return the reason as a permanent refusal."""
        return self._reason
