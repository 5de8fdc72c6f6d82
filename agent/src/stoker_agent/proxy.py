"""
The HTTP proxy through which the agent calls Stoker and other services.

``agent.json`` names it (``proxy``, ``no_proxy``); otherwise the environment does (``https_proxy``, ``http_proxy``,
``no_proxy``). The setting is the process's own, so runs do not inherit it.
"""

from __future__ import annotations

import base64
import os
import urllib.parse
from typing import Dict, List, NamedTuple, Optional, Tuple

from stoker_agent.config import Unusable

_DEFAULT_PORT = 3128


class Proxy(NamedTuple):
    """A proxy. ``headers`` hold the credentials, which no log line contains."""

    host: str
    port: int
    headers: Dict[str, str]


#: The settings of ``agent.json``: the proxy's URL ("" for none, None for the environment's), and the exceptions.
_settings: Tuple[Optional[str], Optional[str]] = (None, None)


def configure(url: Optional[str], no_proxy: Optional[str]) -> None:
    """Set the proxy of this process. ``no_proxy`` is a comma-separated list of hosts. Raises Unusable."""
    global _settings  # noqa: PLW0603 — as with the environment, there is one proxy for all connections
    if url:
        parse(url)
    _settings = (url, no_proxy)


def find_proxy(scheme: str, host: str) -> Optional[Proxy]:
    """Return the proxy for connections to ``host``, or None. Raises Unusable if the proxy's URL is invalid."""
    url, exceptions = _settings
    if url is None:
        url = _variable(f"{scheme}_proxy")
    if exceptions is None:
        exceptions = _variable("no_proxy")
    if not url or _is_direct(host, exceptions.split(",")):
        return None
    return parse(url)


def environment_settings(url: str) -> Tuple[Optional[str], Optional[str]]:
    """Return the environment's proxy for ``url`` and its ``no_proxy``, as settings to store; None if there is none."""
    parts = urllib.parse.urlsplit(url)
    if find_proxy(parts.scheme, parts.hostname or "") is None:
        return None, None
    return _variable(f"{parts.scheme}_proxy"), _variable("no_proxy") or None


def parse(url: str) -> Proxy:
    """Parse the URL of a proxy, ``http://[user:password@]host[:port]``. Raises Unusable, without the URL."""
    wrong = Unusable("the proxy's URL must be http://HOST:PORT or http://USER:PASSWORD@HOST:PORT")
    try:
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme != "http" or not host or parts.path not in ("", "/"):
        raise wrong
    headers = {}
    if parts.username is not None:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(host, port or _DEFAULT_PORT, headers)


def describe(url: str) -> str:
    """Return the proxy's URL without credentials."""
    proxy = parse(url)
    return f"http://{'…@' if proxy.headers else ''}{proxy.host}:{proxy.port}"


def _is_direct(host: str, exceptions: List[str]) -> bool:
    """Whether the host is this machine, or in the list: a name, the end of a name, an address, a network, or ``*``."""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return True
    return any(_matches(host.lower(), entry.strip().lower()) for entry in exceptions if entry.strip())


def _matches(host: str, entry: str) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        import ipaddress  # imported late: few machines list networks

        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name = entry.lstrip("*").lstrip(".")
    return host == name or host.endswith("." + name)


def _variable(name: str) -> str:
    return os.environ.get(name) or os.environ.get(name.upper()) or ""
