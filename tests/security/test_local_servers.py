"""Local servers run users' scripts as the server's own user: where that is wanted, and never for other machines."""

from __future__ import annotations

import pytest

from stoker import settings as all_settings
from stoker.model.errors import Invalid
from stoker.serve.tls import check_exposure


def check(**flags: str) -> None:
    check_exposure(all_settings.load(flags, {}, None))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "stoker.example.org"])
def test_local_servers_are_refused_on_public_addresses(host):
    with pytest.raises(Invalid, match=f"loopback address, not {host}"):
        check(host=host, local_servers_unsafe="true", insecure_http="true", public_url="https://stoker.example.org")
    check(host="127.0.0.2", local_servers_unsafe="true")
