"""The default URL at which clients and agents reach this Stoker, if no setting defines one."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path
from urllib.parse import urlsplit

#: Addresses reserved for documentation. No packet is sent to them; the routing table only reveals the own address.
_ELSEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_LOOPBACK = "127.0.0.1"


def derive(host: str, port: int, certificate: Path | None) -> str:
    """
    Derive the URL from the listening address.

    If the server listens on all addresses, the URL contains a name from the certificate, or else this machine's
    address.
    """
    if is_wildcard(host):
        host = (certificate and _certified_name(certificate)) or _machine_address()
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if certificate else 'http'}://{shown}:{port}"


def is_wildcard(host: str) -> bool:
    """Whether ``host`` stands for all addresses of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host


def is_loopback(host: str) -> bool:
    """Whether ``host`` is reachable from this machine only. Names other than ``localhost`` are not resolved."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_loopback_url(url: str) -> bool:
    """Whether the URL's host is reachable from this machine only."""
    return is_loopback(urlsplit(url).hostname or "")


def _certified_name(certificate: Path) -> str | None:
    """The first DNS name in the certificate; None if there is none or the file cannot be read."""
    from cryptography import x509  # imported late, because most settings need no certificate

    try:
        leaf = x509.load_pem_x509_certificate(certificate.read_bytes())
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return None
    return next((name for name in names.get_values_for_type(x509.DNSName) if "*" not in name), None)


def _machine_address() -> str:
    """The source address of this machine's packets to other networks."""
    for family, target in _ELSEWHERE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((target, 9))
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return _LOOPBACK
