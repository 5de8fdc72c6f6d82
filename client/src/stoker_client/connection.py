"""Connects to a cloud's orchestration service, with the cached login of an earlier command if possible."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session

from stoker_client.errors import NotConfigured
from stoker_client.login_cache import CachedLogin, LoginCache
from stoker_client.wire import Wire

if TYPE_CHECKING:
    from keystoneauth1.plugin import BaseAuthPlugin

SERVICE = "orchestration"


def open_wire(cloud: str | None = None) -> Wire:
    """Connect to ``cloud``, or to the cloud that the environment selects. Raises NotConfigured."""
    cache = LoginCache(cloud)
    if entry := cache.read():
        try:
            return _connect(cache, entry, partial(_read_plugin, cloud), entry["state"])
        except (KeyError, TypeError, ValueError):
            cache.drop()  # the file is damaged, or another version wrote it
    from stoker_client.clouds import read_cloud  # imported here because openstacksdk takes most of a second

    settings = read_cloud(cloud)
    if not settings.connection["auth_url"]:
        session = _open_session(settings.plugin, settings.connection["session"])
        return Wire(Adapter(session, **settings.connection["adapter"]))
    return _connect(cache, settings.connection, lambda: settings.plugin)


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
        login.restore(state)
    session = _open_session(login, entry["session"])
    return Wire(Adapter(session, **entry["adapter"]), on_unreachable=cache.drop)


def _read_plugin(cloud: str | None) -> BaseAuthPlugin:
    """Return the login plugin for an expired token."""
    from stoker_client.clouds import read_cloud

    return read_cloud(cloud).plugin
