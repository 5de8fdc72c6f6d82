"""
Secrets of one transaction: learned from the encrypted columns that it reads, encrypted in the columns that it writes.

If a column's text contains a secret, the whole text is encrypted, together with the secrets in it. A transaction that
reads the column learns these secrets: it encrypts every copy that it writes, and redacts them from output for people.
New secrets enter with the columns that define them: hidden parameters (``stacks``) and secret inputs (``configs``).
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from stoker.model import secrets
from stoker.store import rows
from stoker.store.encryption import Encryption, is_encrypted

_Text = TypeVar("_Text", str, str | None)

#: By table, the columns that are encrypted if they contain a secret. Bytes are always encrypted.
ENCRYPTED: Mapping[str, Collection[str]] = {
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
REDACTED: Mapping[str, Collection[str]] = {
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


class SecretColumns:
    """
    The known secrets of one transaction, and the conversion of values to and from columns::

        tx.secrets.learn([password])
        column = tx.secrets.dump({"command": f"login {password}"})  # encrypted
        tx.secrets.load(column)

    While no secret is known, reading and writing cost only a search in the text.
    """

    def __init__(self, encryption: Encryption | None) -> None:
        self._encryption = encryption
        self._secrets = secrets.SecretSet()
        #: The secret texts that this transaction knows, oldest first.
        self.texts: Collection[str] = self._secrets.texts
        #: The texts to search for in JSON.
        self._needles = secrets.Needles()

    def learn(self, values: Iterable[Any]) -> None:
        """Treat the texts of these values as secrets from now on."""
        for value in values:
            for text in secrets.texts_of(value):
                self._add(text)

    def _add(self, text: str) -> None:
        if text not in self.texts and text != secrets.REDACTED:
            self._secrets.add(text)
            quoted = rows.dump(text)
            if len(text) < secrets.SHORTEST:
                self._needles.add(quoted, text)
            else:  # also within a JSON text that is a string of another JSON text
                self._needles.add(quoted[1:-1], text)
                self._needles.add(rows.dump(quoted)[1:-1].strip('\\"'), text)

    def within(self, text: str) -> list[str]:
        """Return the known secrets that a JSON text contains."""
        return list(dict.fromkeys(self._needles.within(text).values()))

    def encrypt(self, text: str, *, always: bool = False, related: Collection[str] = ()) -> str:
        """
        Return the column for a JSON text: encrypted if the text contains a secret or ``always`` is set, else unchanged.

        ``related`` are secrets that the text does not contain: a transaction that reads the column learns them, too.
        Raises Unavailable if there is no key.
        """
        return text if is_encrypted(text) else self._encrypt(text, always, related)

    def _encrypt(self, text: str, always: bool, related: Collection[str] = ()) -> str:
        present = [*(self.within(text) if self.texts else ()), *related]
        if not (present or always or secrets.may_hold_credential(text)):
            return text
        return self._keys().encrypt(rows.dump([present, text]))

    def decrypt(self, column: str) -> str:
        """Return the JSON text of a column, and learn the secrets in it. Raises Unavailable without the key."""
        if not is_encrypted(column):
            return column
        text: str
        present, text = rows.load(self._keys().decrypt(column))
        for secret in present:
            self._add(secret)
        return text

    def dump(self, value: Any, *, always: bool = False) -> str:
        """Serialize a value as JSON and encrypt the text, as ``encrypt`` does."""
        text = rows.dump(value)
        return self._encrypt(text, always) if value or always else text

    def load(self, column: str) -> Any:
        """Decrypt a column and parse its JSON text."""
        return rows.load(self.decrypt(column) if is_encrypted(column) else column)

    def encrypt_bytes(self, data: bytes) -> bytes:
        """Encrypt bytes, whether they contain a secret or not."""
        return self._keys().encrypt(base64.b64encode(data).decode()).encode()

    def decrypt_bytes(self, data: bytes) -> bytes:
        """Decrypt bytes. Raises Unavailable without the key."""
        return base64.b64decode(self._keys().decrypt(data.decode()))

    def redact(self, value: Any) -> Any:
        """Redact the known secrets in a value for people."""
        return self._secrets.redact(value) if self.texts else value

    def contain(self, value: Any) -> bool:
        """Return whether a value is or contains a known secret."""
        return self._secrets.contain(value)

    def redact_text(self, text: _Text) -> _Text:
        """Redact the known secrets in a sentence that is stored unencrypted; None for None."""
        redacted: _Text = self._secrets.redact(text) if self.texts else text
        return redacted

    def _keys(self) -> Encryption:
        assert self._encryption is not None, "every store has its encryption"
        return self._encryption
