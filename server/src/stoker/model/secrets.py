"""
Secret texts: detection in values, and redaction in output for people.

A secret is identified by its text: the value of a hidden parameter or of a secret input. Stoker finds the text as a
complete value, and within a longer text if the secret is at least ``SHORTEST`` characters long; a shorter one could be
there by chance. Stoker finds only the literal text, not the result of a script or function (base64, upper case, a
part).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

#: Replaces a secret, as in Heat.
REDACTED = "******"
#: Characters. A shorter secret is only found as a complete value.
SHORTEST = 4
#: Characters. In a secret of several lines (key, certificate), each line of at least this length is also a secret.
SHORTEST_LINE = 8

#: Prefix of every password and key that Stoker derives itself, so that copies of them are found everywhere.
CREDENTIAL_PREFIX = "stk_"
_DERIVED = re.compile(CREDENTIAL_PREFIX + "[0-9a-f]{32,64}")
_CREDENTIAL = re.compile(
    rb"stk_[0-9a-f]{32,64}"
    rb"|signal\.[0-9a-f-]{36}\.[0-9a-f]{64}"
    rb"|(?<=ignature=)[^&\s\"'\\<>;]+"
    rb"|(?<=temp_url_sig=)[^&\s\"'\\<>;]+"
    rb"|(?<=ignature\":\")[^\"]+"
    rb"|(?<=data:;base64,)[A-Za-z0-9+/=]+"  # user data of Ignition contains the agent's configuration in this form
)


def texts_of(value: Any) -> Iterator[str]:
    """
    Yield the texts that a secret value consists of, including those in its lists and maps.

    Booleans are skipped, because their texts are not distinctive.
    """
    if isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from texts_of(part)
    elif value is not None and not isinstance(value, bool) and value != "":
        yield str(value)


class SecretSet:
    """
    A growing set of secrets, and their search in texts::

        found = SecretSet(["S3CR3T"])
        found.redact({"command": "login S3CR3T"}) == {"command": "login ******"}

    Its cost per text is linear in the number of secrets that people chose, and does not depend on the number of
    credentials that Stoker derived: the operation of one large stack knows thousands of them.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        #: The secrets, oldest first.
        self.texts: dict[str, None] = {}
        self._needles = Needles()
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a secret."""
        if text not in self.texts:
            self.texts[text] = None
            for form in variants(text):
                if len(form) >= SHORTEST:
                    self._needles.add(form, text)

    def contain(self, value: Any) -> bool:
        """Return whether a value is a secret or contains a secret that is too long to be there by chance."""
        if not self.texts or value is None:
            return False
        if isinstance(value, Mapping | list | tuple):
            return any(self.contain(part) for part in (value.values() if isinstance(value, Mapping) else value))
        text = value if isinstance(value, str) else str(value)
        return text in self.texts or bool(self._needles.within(text))

    def redact(self, value: Any) -> Any:
        """Return the value with every secret in it replaced by REDACTED. Sequences become lists."""
        return self._redact(value) if self.texts else value

    def _redact(self, value: Any) -> Any:
        if isinstance(value, str):
            return REDACTED if value in self.texts else self._redact_within(value)
        if isinstance(value, Mapping):
            return {
                self._redact_within(name) if isinstance(name, str) else name: self._redact(part)
                for name, part in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._redact(part) for part in value]
        if value is None or isinstance(value, bool):
            return value
        return REDACTED if self.contain(value) else value

    def _redact_within(self, text: str) -> str:
        forms = self._needles.within(text)
        if not forms:
            return text
        # The longest is first, because one may be part of another.
        return re.sub("|".join(map(re.escape, sorted(forms, key=len, reverse=True))), REDACTED, text)


class Needles:
    """Texts to search for in other texts, each with the secret that it reveals."""

    def __init__(self) -> None:
        self._chosen: dict[str, str] = {}
        self._derived: dict[str, str] = {}
        self._lengths: set[int] = set()

    def add(self, needle: str, secret: str) -> None:
        """Add a text to search for."""
        if _DERIVED.fullmatch(needle):
            self._derived[needle] = secret
            self._lengths.add(len(needle))
        else:
            self._chosen[needle] = secret

    def within(self, text: str) -> dict[str, str]:
        """Return the needles in a text, each with its secret."""
        present = {needle: secret for needle, secret in self._chosen.items() if needle in text}
        if self._derived and CREDENTIAL_PREFIX in text:
            for match in _DERIVED.findall(text):
                for needle in (match[:length] for length in self._lengths):
                    if needle in self._derived:
                        present[needle] = self._derived[needle]
        return present


def redact(value: Any, secrets: Iterable[str]) -> Any:
    """Return the value with these secrets replaced by REDACTED, as ``SecretSet.redact`` does."""
    return SecretSet(secrets).redact(value)


def mask(values: Mapping[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    """Return the values with REDACTED in place of those with a hidden name."""
    return {name: REDACTED if name in hidden else value for name, value in values.items()}


def variants(secret: str) -> Iterator[str]:
    """Yield the forms in which a text may contain a secret: the secret itself, its JSON form, and its lines."""
    yield secret
    quoted = json.dumps(secret, ensure_ascii=False)[1:-1]
    if quoted != secret:
        yield quoted
    lines = secret.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= SHORTEST_LINE)


def may_hold_credential(text: str) -> bool:
    """
    Return whether a text may contain a credential that ``redact_credentials`` removes. May return True without one.

    Every text with a credential contains one of these parts. Searching them is faster than the expression, which is
    exact, and faster one by one than in a loop: the store calls this for every text that may be encrypted.
    """
    return (
        CREDENTIAL_PREFIX in text
        or "signal." in text
        or "ignature" in text
        or "temp_url_sig=" in text
        or ";base64," in text
        or " PRIVATE KEY-----" in text  # generated for a template: encrypted, but shown to those who may read it
    )


def redact_credentials(data: bytes) -> bytes:
    """
    Redact Stoker's own credentials in a JSON or XML response: passwords and keys of agents, signal tokens, and
    signatures of URLs.
    """
    return _CREDENTIAL.sub(REDACTED.encode(), data)
