"""
Sources of the encryption keys: a setting, a file beside the site secret, and a key derived from the site secret.

The derived key always comes last. A site that never rotated its keys has only this key, and all processes that share
the site secret can derive it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cryptography.fernet import Fernet

from stoker import private_file
from stoker.model.errors import Invalid
from stoker.serve.site_secret import read_site_secret
from stoker.settings import Settings
from stoker.store.encryption import KeySource, derive_key


def key_source(settings: Settings) -> KeySource:
    """A source that reads the keys again on each call, because another process may have added a key."""

    def keys() -> Sequence[bytes]:
        return (*configured_keys(settings), *_derived_key(settings))

    return keys


def configured_keys(settings: Settings) -> tuple[bytes, ...]:
    """The configured keys, newest first, without the derived key. Raises Invalid."""
    if settings.encryption_keys:
        return parse_keys(settings.encryption_keys, "encryption_keys")
    file = key_file(settings)
    return parse_keys(file.read_text(), str(file)) if file.exists() else ()


def key_file(settings: Settings) -> Path:
    """The file in which ``stoker db rotate-keys`` stores the keys."""
    return settings.state_dir / "keys" / "encryption.keys"


def _derived_key(settings: Settings) -> tuple[bytes, ...]:
    secret = read_site_secret(settings)
    return () if secret is None else (derive_key(secret),)


def parse_keys(text: str, where: str) -> tuple[bytes, ...]:
    """
    Parse Fernet keys separated by commas, spaces or newlines. ``where`` names the source in the error.

    Raises Invalid; the message never contains a key.
    """
    keys = tuple(key.encode() for key in text.replace(",", " ").split())
    for position, key in enumerate(keys, 1):
        try:
            Fernet(key)
        except ValueError:
            raise Invalid(
                f"{where}: key {position} is no Fernet key (32 bytes in URL-safe base64), as 'stoker db rotate-keys' "
                "makes them"
            ) from None
    return keys


def add_key(settings: Settings) -> bool:
    """
    Generate a key and store it as the first one in the key file; from then on it encrypts new secrets.

    Returns False without a change if an interrupted rotation has already added a key, or if a setting contains the
    keys.
    """
    keys = configured_keys(settings)
    if settings.encryption_keys or len(keys) > 1:
        return False
    _write(settings, (Fernet.generate_key(), *(keys or _derived_key(settings))))
    return True


def drop_old_keys(settings: Settings) -> None:
    """Remove all keys but the newest from the key file. The derived key remains available."""
    if not settings.encryption_keys:
        _write(settings, configured_keys(settings)[:1])


def _write(settings: Settings, keys: Sequence[bytes]) -> None:
    """Replace the file atomically: a concurrent reader sees either the old or the new keys."""
    private_file.replace(key_file(settings), b"".join(key + b"\n" for key in keys))
