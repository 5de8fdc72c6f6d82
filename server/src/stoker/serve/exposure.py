"""Start-up check: refuses settings that send secrets unencrypted or let users' scripts read keys."""

from __future__ import annotations

from stoker.model.errors import Invalid
from stoker.public_url import is_loopback
from stoker.settings import Settings


def check_exposure(settings: Settings) -> None:
    """
    Raises Invalid for settings that expose secrets.

    This is a listener beyond loopback that either has local servers or would transmit secrets unencrypted.
    """
    host = settings.host
    if is_loopback(host):
        return
    if settings.local_servers_unsafe:
        raise Invalid(
            "scripts on local servers can read the site's secret: with --local-servers-unsafe --host must be a loopback"
            f" address, not {host}"
        )
    if not (settings.has_tls or settings.insecure_http or settings.public_url.startswith("https://")):
        raise Invalid(
            f"other machines reach --host {host}, and passwords, tokens and scripts would go unencrypted: give"
            " --tls-cert and --tls-key; or declare the TLS proxy in front with --public-url https://…; or accept it"
            " with --insecure-http"
        )
