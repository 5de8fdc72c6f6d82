"""
The site secret, and the keys that encrypt secrets in the database.

Agents' keys, signed URLs and the logins of stack users derive from the secret, so a process with another secret would
refuse every agent. The database stores a fingerprint of the secret, never the secret.

The encryption keys are in a setting, or in a file beside the site secret. A key that derives from the site secret
always comes last. A site that never rotated its keys has only this key, and all processes that share the site secret
can derive it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from pathlib import Path

from cryptography.fernet import Fernet

from stoker import private_file
from stoker.model.errors import Conflict, Invalid
from stoker.serve.state_dir import admin_file
from stoker.settings import Settings, check_secret
from stoker.store import site
from stoker.store.encryption import KeySource, derive_key
from stoker.store.open import Store

_FINGERPRINT = "secret_fingerprint"


def has_site_secret(settings: Settings) -> bool:
    """Whether the settings or the state directory contain a secret."""
    return bool(settings.secret_key) or secret_file(settings).exists()


def load_site_secret(settings: Settings, store: Store, *, replace_fingerprint: bool = False) -> bytes:
    """
    Return the secret from the settings or the state directory, or generate and store one for a new database.

    With ``replace_fingerprint``, the database accepts this secret, or a generated one, in place of its earlier secret.
    Raises Conflict if the database belongs to another secret, or is empty although the state directory has the login of
    a site. Raises Invalid if the secret is too short.
    """
    path = secret_file(settings)
    secret = read_site_secret(settings)
    stored = None if replace_fingerprint else _stored_fingerprint(store)
    if stored is None and not replace_fingerprint and admin_file(settings.state_dir).exists():
        raise Conflict(
            f"this database is empty, but {settings.state_dir} has the login of a site: restore the database from the"
            " backup, or correct the setting database; for a new site, choose an empty --state-dir"
        )
    if secret is not None:
        where = "the setting secret_key" if settings.secret_key else str(path)
        _claim(store, secret, stored, where, replace=replace_fingerprint)
        return secret
    if stored is not None:
        raise _other_secret(f"{path} is missing")
    secret = secrets.token_hex(32).encode()
    # The file is written first: a secret that only the database relies on could get lost.
    private_file.replace(path, secret)
    try:
        _claim(store, secret, None, str(path), replace=replace_fingerprint)
    except Conflict:  # another process initialized the database first
        path.unlink()
        raise
    return secret


def read_site_secret(settings: Settings) -> bytes | None:
    """
    The secret from the settings or the state directory; None before the first start. Raises Invalid if it is too short.
    """
    return settings.secret_key.encode() or _read_secret(secret_file(settings))


def secret_file(settings: Settings) -> Path:
    """The file that stores the secret if the settings contain none."""
    return settings.state_dir / "keys" / "site.key"


def fingerprint(secret: bytes) -> str:
    """The fingerprint that the database stores: it identifies the secret without revealing it."""
    return hmac.new(secret, b"stoker site secret fingerprint", hashlib.sha256).hexdigest()


def _stored_fingerprint(store: Store) -> str | None:
    with store.read() as tx:
        return site.get_property(tx, _FINGERPRINT)


def _claim(store: Store, secret: bytes, stored: str | None, where: str, *, replace: bool) -> None:
    """Ensure that the database belongs to ``secret``. Raises Conflict."""
    own = fingerprint(secret)
    if replace:
        store.write(lambda tx: site.replace_property(tx, _FINGERPRINT, own))
        return
    if stored is None:
        stored = store.write(lambda tx: site.add_property(tx, _FINGERPRINT, own))
    if not hmac.compare_digest(stored, own):
        raise _other_secret(f"{where} is another one")


def _other_secret(problem: str) -> Conflict:
    return Conflict(
        f"this database was set up with another site secret: {problem}. Either this is a second process with a state"
        " directory of its own, or the database was restored without the directory keys. Give the site's secret with"
        " --secret-key-file FILE (or STOKER_SECRET_KEY): it is in the file keys/site.key of the state"
        " directory that served this database first, or of its backup"
    )


def _read_secret(path: Path) -> bytes | None:
    try:
        secret = path.read_bytes().strip()
    except FileNotFoundError:
        return None
    check_secret(secret, str(path))
    return secret


def key_source(settings: Settings) -> KeySource:
    """A source that reads the keys again on each call, because another process may have added a key."""

    def keys() -> Sequence[bytes]:
        return (*configured_keys(settings), *_derived_key(settings))

    return keys


def configured_keys(settings: Settings) -> tuple[bytes, ...]:
    """The configured keys, newest first, without the derived key. Raises Invalid."""
    if settings.encryption_keys:
        return parse_keys(settings.encryption_keys, "encryption_keys")
    file = encryption_key_file(settings)
    return parse_keys(file.read_text(), str(file)) if file.exists() else ()


def encryption_key_file(settings: Settings) -> Path:
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
    _write_keys(settings, (Fernet.generate_key(), *(keys or _derived_key(settings))))
    return True


def drop_old_keys(settings: Settings) -> None:
    """Remove all keys but the newest from the key file. The derived key remains available."""
    if not settings.encryption_keys:
        _write_keys(settings, configured_keys(settings)[:1])


def _write_keys(settings: Settings, keys: Sequence[bytes]) -> None:
    """Replace the file atomically: a concurrent reader sees either the old or the new keys."""
    private_file.replace(encryption_key_file(settings), b"".join(key + b"\n" for key in keys))
