"""
Connects to a cloud's orchestration service, with the cached login of an earlier command if possible.

So most commands need only one request. A file holds a token and its catalog, readable by the user only. The file's
name derives from all settings that select and configure the cloud, so a changed password or clouds.yaml leads to
another file. If the file cannot be read or written, the command logs in without an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.session import Session

from stoker_client.errors import NotConfigured
from stoker_client.wire import Wire

if TYPE_CHECKING:
    from keystoneauth1.access import AccessInfo
    from keystoneauth1.plugin import BaseAuthPlugin

SERVICE = "orchestration"

#: Seconds after which an unused file is removed. No token lives longer.
_LONGEST = 7 * 24 * 3600
_NAMES = ("clouds", "clouds-public", "secure")
_SUFFIXES = (".yaml", ".yml", ".json")
_FILE_VARIABLES = ("OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE", "OS_CLIENT_VENDOR_FILE")


class LoginCache:
    """The cached login of one configuration of one cloud."""

    def __init__(self, cloud: str | None) -> None:
        self._folder = platformdirs.user_cache_path("stoker") / "logins"
        self._file = self._folder / f"{_fingerprint(cloud)}.json"

    def read(self) -> Mapping[str, Any] | None:
        """Return the stored login, or None."""
        try:
            entry = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return None
        return entry if isinstance(entry, dict) else None

    def write(self, login: Mapping[str, Any]) -> None:
        """Store ``login``, which must be JSON-compatible."""
        fresh = self._file.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                json.dump(login, file)
            fresh.replace(self._file)
            self._remove_old()

    def drop(self) -> None:
        """Remove the stored login, because the service rejects it or does not answer."""
        with contextlib.suppress(OSError):
            self._file.unlink()

    def _remove_old(self) -> None:
        before = time.time() - _LONGEST
        for file in self._folder.iterdir():
            if file.stat().st_mtime < before:
                file.unlink()


def _fingerprint(cloud: str | None) -> str:
    """Return a digest of all settings by which openstacksdk selects and configures the cloud."""
    digest = hashlib.sha256()
    variables = {name: value for name, value in os.environ.items() if name.startswith("OS_")}
    digest.update(json.dumps([cloud, sorted(variables.items()), os.getuid()]).encode())
    for file in _config_files(variables):
        with contextlib.suppress(OSError):
            digest.update(f"\0{file}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:32]


def _config_files(variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files that openstacksdk reads."""
    yield from (Path(variables[name]) for name in _FILE_VARIABLES if name in variables)
    folders = (
        Path.cwd(), platformdirs.user_config_path("openstack"), Path.home() / ".config" / "openstack",
        platformdirs.site_config_path("openstack"), Path("/etc/openstack"),
    )  # fmt: skip
    yield from (folder / f"{name}{suffix}" for folder in folders for name in _NAMES for suffix in _SUFFIXES)


class CachedLogin(BaseIdentityPlugin):  # type: ignore[misc]  # keystoneauth is untyped here
    """
    Uses the token of an earlier command while it is valid, else a token from ``plugin``.

    ``plugin`` is a function that returns a keystoneauth plugin; it is called only when a token is needed.
    ``connection`` is stored with the token, so that later commands can connect without openstacksdk.
    """

    def __init__(
        self, cache: LoginCache, auth_url: str, connection: Mapping[str, Any], plugin: Callable[[], BaseAuthPlugin]
    ) -> None:
        super().__init__(auth_url=auth_url)
        self._cache = cache
        self._connection = connection
        self._plugin = plugin

    def get_auth_ref(self, session: Session, **_: Any) -> AccessInfo:
        """Log in and store the token for later commands."""
        access = self._plugin().get_access(session)
        state = json.dumps({"auth_token": access.auth_token, "body": access._data})  # the format of get_auth_state
        self._cache.write({**self._connection, "state": state})
        return access

    def invalidate(self) -> bool:
        """Discard a rejected token, here and for later commands."""
        self._cache.drop()
        return bool(super().invalidate())

    def get_cache_id_elements(self) -> dict[str, str | None]:
        """Return nothing, because keystoneauth must not cache this plugin."""
        return {}


def open_wire(cloud: str | None = None) -> Wire:
    """Connect to ``cloud``, or to the cloud that the environment selects. Raises NotConfigured."""
    cache = LoginCache(cloud)
    if entry := cache.read():
        try:
            return _connect(cache, entry, lambda: _read_cloud(cloud)[0], entry["state"])
        except (KeyError, TypeError, ValueError):
            cache.drop()  # the file is damaged, or another version wrote it
    plugin, connection = _read_cloud(cloud)
    if connection["auth_url"]:
        return _connect(cache, connection, lambda: plugin)
    return Wire(Adapter(_open_session(plugin, connection["session"]), **connection["adapter"]))


def _read_cloud(cloud: str | None) -> tuple[BaseAuthPlugin, Mapping[str, Any]]:
    from stoker_client.clouds import read_cloud  # imported here because openstacksdk takes most of a second

    return read_cloud(cloud)


def _open_session(auth: BaseAuthPlugin, transport: Mapping[str, Any]) -> Session:
    """Return a session. Raises NotConfigured if this user cannot read the CA's certificate."""
    verify = transport["verify"]
    if isinstance(verify, str) and not os.access(verify, os.R_OK):
        raise NotConfigured(
            f"cannot read the CA's certificate {verify} (OS_CACERT, or cacert in clouds.yaml): name a copy that this"
            " user can read"
        )
    return Session(auth=auth, app_name="stoker", **transport)


def _connect(cache: LoginCache, connection: Mapping[str, Any], plugin: Any, state: str | None = None) -> Wire:
    entry = {name: connection[name] for name in ("auth_url", "session", "adapter")}
    login = CachedLogin(cache, entry["auth_url"], entry, plugin)
    if state is not None:
        login.set_auth_state(state)
    session = _open_session(login, entry["session"])
    return Wire(Adapter(session, **entry["adapter"]), on_unreachable=cache.drop)
