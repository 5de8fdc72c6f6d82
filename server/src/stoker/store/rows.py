"""
Conversion between values and columns: the only module that knows how values are stored.

Times are integers: microseconds since 1970 in UTC. Structures are JSON texts.

If a column's text contains a secret, the whole text is encrypted, together with the secrets in it. A transaction that
reads the column learns these secrets: it encrypts every copy that it writes, and redacts them from output for people.
New secrets enter with the columns that define them: hidden parameters (``stacks``) and secret inputs (``configs``).
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from stoker.model import secrets
from stoker.store.encryption import Encryption

#: The LIMIT of a query for all rows.
UNLIMITED = 2**62
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
#: Serializes as JSON, to bytes.
encode_json = msgspec.json.Encoder().encode
#: Parses JSON. Most columns with JSON are read on hot paths, so this is the decoder's own method.
load = msgspec.json.Decoder().decode


def dump(value: Any) -> str:
    """Serialize a value as JSON."""
    return encode_json(value).decode()


def to_micros(moment: datetime) -> int:
    """Convert a time to microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


def to_duration(period: timedelta) -> int:
    """Convert a period to microseconds."""
    return period // MICROSECOND


def from_micros(stored: int) -> datetime:
    """Convert microseconds since 1970 to a time in UTC."""
    return EPOCH + timedelta(0, 0, stored)


def heat_time(when: datetime) -> str:
    """Format a time as Heat does: UTC, without fractions of a second, with the suffix Z."""
    return f"{when.year:04}-{when.month:02}-{when.day:02}T{when.hour:02}:{when.minute:02}:{when.second:02}Z"


def count_fitting(sizes: Sequence[int], most: int) -> int:
    """Return how many of the first rows of these sizes have ``most`` bytes together; at least 1 if there is a row."""
    return max(sum(total <= most for total in itertools.accumulate(sizes)), 1) if sizes else 0


#: The prefix of every encrypted text. No JSON text begins with it.
ENCRYPTED = "gAAAAA"
#: By table, the columns that are encrypted if they contain a secret. Bytes are always encrypted.
ENCRYPTED_COLUMNS: Mapping[str, Collection[str]] = {
    "accounts": ("headers",),
    "checks": ("changes",),
    "cloud_credentials": ("secret",),
    "cloud_objects": ("specification", "arguments", "observed", "progress"),
    "configs": ("body",),
    "containers": ("headers",),
    "deployments": ("input_values", "output_values", "changes", "stdout_held", "stderr_held"),
    "messages": ("body",),
    "objects": ("data",),
    "queues": ("metadata",),
    "remote_objects": ("body", "details"),
    "resources": ("definition", "properties", "metadata", "data"),
    "runs": ("input_values", "output_values", "changes"),
    "schedules": ("body",),
    "snapshots": ("data",),
    "stacks": ("parameters", "outputs", "source", "previous"),
    "steps": ("definition",),
    "subscriptions": ("subscriber", "options"),
    "trigger_targets": ("input_values",),
    "triggers": ("config", "input_values"),
}
#: By table, the columns with a sentence for people, in which known secrets are redacted.
REDACTED_COLUMNS: Mapping[str, Collection[str]] = {
    "checks": ("reason",),
    "cloud_objects": ("reason",),
    "deployments": ("status_reason", "message"),
    "resources": ("reason",),
    "runs": ("message", "status_reason"),
    "schedules": ("last_error",),
    "snapshots": ("reason",),
    "stacks": ("reason", "failure"),
    "trigger_targets": ("status_reason",),
    "triggers": ("status_reason",),
}


class ProtectedColumns(NamedTuple):
    """Names of columns: texts that are encrypted if they contain a secret, bytes, and sentences for people."""

    encrypted: Sequence[str]
    encrypted_bytes: Sequence[str]
    redacted: Sequence[str]


class SecretColumns:
    """
    The known secrets of one transaction, and the conversion of values to and from columns::

        tx.secrets.learn([password])
        column = tx.secrets.dump({"command": f"login {password}"})  # encrypted
        tx.secrets.decrypt(column)

    While no secret is known, reading and writing cost only a search in the text.
    """

    def __init__(self, encryption: Encryption) -> None:
        self._encryption = encryption
        #: None until the transaction knows a secret: most transactions know none.
        self._secrets: secrets.SecretSet | None = None
        #: The secret texts that this transaction knows, oldest first.
        self.texts: Collection[str] = ()
        #: The texts to search for in JSON.
        self._needles: secrets.Needles | None = None

    def learn(self, values: Iterable[Any]) -> None:
        """Treat the texts of these values as secrets from now on."""
        for value in values:
            for text in secrets.texts_of(value):
                self._add(text)

    def _add(self, text: str) -> None:
        if text not in self.texts and text != secrets.REDACTED:
            if self._secrets is None or self._needles is None:
                self._secrets, self._needles = secrets.SecretSet(), secrets.Needles()
                self.texts = self._secrets.texts
            self._secrets.add(text)
            quoted = dump(text)
            if len(text) < secrets.SHORTEST:
                self._needles.add(quoted, text)
            else:  # also within a JSON text that is a string of another JSON text
                self._needles.add(quoted[1:-1], text)
                self._needles.add(dump(quoted)[1:-1].strip('\\"'), text)

    def within(self, text: str) -> list[str]:
        """Return the known secrets that a JSON text contains."""
        return [] if self._needles is None else list(dict.fromkeys(self._needles.within(text).values()))

    def encrypt(self, text: str, *, always: bool = False, present: Collection[str] | None = None) -> str:
        """
        Return the column for a JSON text: encrypted if the text contains a secret or ``always`` is set, else unchanged.

        ``present`` are the secrets that a transaction learns when it reads the column; None: those within the text.
        Raises Unavailable if there is no key.
        """
        if present is None:
            present = self.within(text) if self.texts else ()
        if not (present or always or secrets.may_hold_credential(text)):
            return text
        return self._encryption.encrypt(dump([present, text]))

    def protect(self, row: dict[str, Any], columns: ProtectedColumns, always: Collection[str] = ()) -> None:
        """
        Encrypt the columns of a row that contain a secret, and redact the known secrets in its sentences for people.

        ``always`` names texts that are encrypted in any case. Most rows have no secret, as one search shows.
        """
        for name in columns.redacted if self.texts else ():
            row[name] = self.redact(row[name])
        for name in columns.encrypted_bytes:
            if row[name] is not None:
                row[name] = self.encrypt_bytes(row[name])
        texts = "\n".join(filter(None, map(row.__getitem__, columns.encrypted)))
        if self.texts or always or secrets.may_hold_credential(texts):
            for name in columns.encrypted:
                if row[name] is not None:
                    row[name] = self.encrypt(row[name], always=name in always)

    def decrypt(self, column: str) -> str:
        """Return the JSON text of a column, and learn the secrets in it. Raises Unavailable without the key."""
        if not column.startswith(ENCRYPTED):
            return column
        text: str
        present, text = load(self._encryption.decrypt(column))
        for secret in present:
            self._add(secret)
        return text

    def dump(self, value: Any, *, always: bool = False) -> str:
        """Serialize a value as JSON and encrypt the text, as ``encrypt`` does."""
        return self.encrypt(dump(value), always=always)

    def encrypt_bytes(self, data: bytes) -> bytes:
        """Encrypt bytes, whether they contain a secret or not."""
        return self._encryption.encrypt(base64.b64encode(data).decode()).encode()

    def decrypt_bytes(self, data: bytes) -> bytes:
        """Decrypt bytes. Raises Unavailable without the key."""
        return base64.b64decode(self._encryption.decrypt(data.decode()))

    def redact(self, value: Any) -> Any:
        """Redact the known secrets in a value for people, or in a sentence that is stored unencrypted."""
        return value if self._secrets is None else self._secrets.redact(value)

    def contain(self, value: Any) -> bool:
        """Return whether a value is or contains a known secret."""
        return self._secrets is not None and self._secrets.contain(value)
