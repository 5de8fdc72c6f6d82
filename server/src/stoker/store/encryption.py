"""
Encryption at rest: the keys, and the secrets of one transaction.

Keys are Fernet keys, newest first. The first key encrypts; all keys decrypt. Their source is in ``serve.site_keys``.

If a column's text contains a secret, the whole text is encrypted, together with the secrets in it. A transaction that
reads the column learns these secrets: it encrypts every copy that it writes, and redacts them from output for people.
New secrets enter with the columns that define them: hidden parameters (``stacks``) and secret inputs (``configs``).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from stoker.model import secrets
from stoker.model.errors import Unavailable
from stoker.store import rows

#: The prefix of every encrypted text. No JSON text begins with it.
ENCRYPTED = "gAAAAA"
#: Seconds between two reads of the key source. After that, all processes with one key file encrypt with its first key.
RELOAD_SECONDS = 1.0

#: Returns the keys, newest first.
KeySource = Callable[[], Sequence[bytes]]


def derive_key(site_secret: bytes) -> bytes:
    """Return the key of a site without generated keys: the same for every process with this site secret."""
    return base64.urlsafe_b64encode(hmac.digest(site_secret, b"stoker sealed secrets", hashlib.sha256))


class Encryption:
    """
    Encrypts and decrypts texts. Thread-safe.

    Calls ``source`` when a key is first needed, and again at most once per second, so that a new key needs no restart.
    """

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._keys: tuple[bytes, ...] = ()
        self._fernet: MultiFernet | None = None
        self._checked = -RELOAD_SECONDS

    def encrypt(self, text: str) -> str:
        """Encrypt with the newest key. Raises Unavailable if there is no key."""
        self._reload()
        if self._fernet is None:
            raise Unavailable(_NO_KEY)
        return self._fernet.encrypt(text.encode()).decode()  # with the first key

    def decrypt(self, token: str) -> str:
        """Decrypt with any of the keys. Raises Unavailable if none of them encrypted the text."""
        self._reload()
        for attempt in range(2):
            if self._fernet is not None:
                try:
                    return self._fernet.decrypt(token.encode()).decode()
                except InvalidToken:
                    pass
            if attempt == 0:
                self._load()  # another process may have created a new key just now
        raise Unavailable(_NO_KEY)

    def rotate(self, token: str) -> str | None:
        """
        Return the text encrypted with the newest key, or None if it already is.

        Raises Unavailable if no known key decrypts the text.
        """
        self._reload()
        if not self._keys:
            raise Unavailable(_NO_KEY)
        try:
            Fernet(self._keys[0]).decrypt(token.encode())
        except InvalidToken:
            return self.encrypt(self.decrypt(token))
        return None

    def _reload(self) -> None:
        if time.monotonic() - self._checked > RELOAD_SECONDS:
            self._load()

    def _load(self) -> None:
        with self._lock:
            self._checked = time.monotonic()
            keys = tuple(self._source())
            if keys != self._keys:
                self._fernet = MultiFernet([Fernet(key) for key in keys]) if keys else None
                self._keys = keys


_NO_KEY = (
    "a secret in the database was encrypted with a key that is not known here: give the site's secret_key, its state "
    "directory, or its encryption keys"
)


def without_keys() -> Sequence[bytes]:
    """Return no keys: the key source for tools that neither read nor write secrets."""
    return ()


#: By table, the columns that are encrypted if they contain a secret. Bytes are always encrypted.
ENCRYPTED_COLUMNS: Mapping[str, Collection[str]] = {
    "accounts": ("headers",),
    "checks": ("changes",),
    "cloud_credentials": ("secret",),
    "cloud_objects": ("specification", "arguments", "observed", "progress"),
    "configs": ("body",),
    "containers": ("headers",),
    "delegations": ("trust_id",),
    "deployments": ("input_values", "output_values", "changes", "stdout_held", "stderr_held"),
    "messages": ("body",),
    "objects": ("data",),
    "remote_objects": ("body", "details"),
    "resources": ("definition", "properties", "metadata", "data"),
    "runs": ("input_values", "output_values", "changes"),
    "schedules": ("body",),
    "snapshots": ("data",),
    "stacks": ("parameters", "outputs", "source", "previous"),
    "steps": ("definition",),
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

    def __init__(self, encryption: Encryption | None) -> None:
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
            quoted = rows.dump(text)
            if len(text) < secrets.SHORTEST:
                self._needles.add(quoted, text)
            else:  # also within a JSON text that is a string of another JSON text
                self._needles.add(quoted[1:-1], text)
                self._needles.add(rows.dump(quoted)[1:-1].strip('\\"'), text)

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
        return self._keys().encrypt(rows.dump([present, text]))

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
        present, text = rows.load(self._keys().decrypt(column))
        for secret in present:
            self._add(secret)
        return text

    def dump(self, value: Any, *, always: bool = False) -> str:
        """Serialize a value as JSON and encrypt the text, as ``encrypt`` does."""
        return self.encrypt(rows.dump(value), always=always)

    def encrypt_bytes(self, data: bytes) -> bytes:
        """Encrypt bytes, whether they contain a secret or not."""
        return self._keys().encrypt(base64.b64encode(data).decode()).encode()

    def decrypt_bytes(self, data: bytes) -> bytes:
        """Decrypt bytes. Raises Unavailable without the key."""
        return base64.b64decode(self._keys().decrypt(data.decode()))

    def redact(self, value: Any) -> Any:
        """Redact the known secrets in a value for people, or in a sentence that is stored unencrypted."""
        return value if self._secrets is None else self._secrets.redact(value)

    def contain(self, value: Any) -> bool:
        """Return whether a value is or contains a known secret."""
        return self._secrets is not None and self._secrets.contain(value)

    def _keys(self) -> Encryption:
        assert self._encryption is not None, "every store has its encryption"
        return self._encryption
