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


def contains_secret(value: Any, secrets: Collection[str]) -> bool:
    """Return whether a value is a secret or contains a secret that is too long to be there by chance."""
    if not secrets or value is None:
        return False
    if isinstance(value, Mapping | list | tuple):
        parts = value.values() if isinstance(value, Mapping) else value
        return any(contains_secret(part, secrets) for part in parts)
    text = value if isinstance(value, str) else str(value)
    return any(text == secret or (len(secret) >= SHORTEST and secret in text) for secret in secrets)


def redact(value: Any, secrets: Collection[str]) -> Any:
    """Return the value with every secret in it replaced by REDACTED. Sequences become lists."""
    return _redact(value, secrets, _expression(secrets)) if secrets else value


def redact_text(text: str, secrets: Collection[str]) -> str:
    """Redact a sentence, such as the reason of a failure."""
    redacted: str = redact(text, secrets)
    return redacted


def _redact(value: Any, secrets: Collection[str], within: re.Pattern[str] | None) -> Any:
    if isinstance(value, str):
        if value in secrets:
            return REDACTED
        return within.sub(REDACTED, value) if within else value
    if isinstance(value, Mapping):
        return {_redact(name, (), within): _redact(part, secrets, within) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_redact(part, secrets, within) for part in value]
    if value is None or isinstance(value, bool):
        return value
    return REDACTED if contains_secret(value, secrets) else value


def variants(secret: str) -> Iterator[str]:
    """Yield the forms in which a text may contain a secret: the secret itself, its JSON form, and its lines."""
    yield secret
    quoted = json.dumps(secret, ensure_ascii=False)[1:-1]
    if quoted != secret:
        yield quoted
    lines = secret.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= SHORTEST_LINE)


def _expression(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """
    Return an expression that finds the secrets in texts. The longest is first, because one may be part of another.
    """
    texts = {text for secret in secrets for text in variants(secret) if len(text) >= SHORTEST}
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True)))) if texts else None


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
