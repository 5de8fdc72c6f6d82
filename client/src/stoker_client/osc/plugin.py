"""
The plugin of the `openstack` command: an API named ``stoker``, beside python-heatclient's ``orchestration``.

Both use the same service, so the catalog entry is ``orchestration``, and the token is that of the session.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from keystoneauth1.adapter import Adapter
from osc_lib import utils

from stoker_client.client import Client
from stoker_client.login import SERVICE
from stoker_client.wire import Wire

DEFAULT_API_VERSION = "1"
API_VERSION_OPTION = "os_stoker_api_version"
API_NAME = "stoker"
API_VERSIONS = ("1",)


def make_client(instance: Any) -> Client:
    """Return a client of the cloud to which the `openstack` command is logged in."""
    return Client(
        Wire(
            Adapter(
                instance.session,
                service_type=SERVICE,
                interface=instance.interface,
                region_name=instance.region_name,
            )
        )
    )


def build_option_parser(parser: ArgumentParser) -> ArgumentParser:
    """Add the option for the API version, which every plugin has."""
    parser.add_argument(
        "--os-stoker-api-version",
        metavar="<stoker-api-version>",
        default=utils.env("OS_STOKER_API_VERSION", default=DEFAULT_API_VERSION),
        help=f"Version of Stoker's own API (default: {DEFAULT_API_VERSION})",
    )
    return parser
