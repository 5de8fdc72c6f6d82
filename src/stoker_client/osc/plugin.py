"""
How the `openstack` command finds us: an API of our own name, beside python-heatclient's ``orchestration``.

The service is the same one, so it is found in the catalog as ``orchestration``, with the session's token.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from keystoneauth1.adapter import Adapter
from osc_lib import utils

from stoker_client.client import Client
from stoker_client.clouds import SERVICE
from stoker_client.wire import Wire

DEFAULT_API_VERSION = "1"
API_VERSION_OPTION = "os_stoker_api_version"
API_NAME = "stoker"
API_VERSIONS = ("1",)


def make_client(instance: Any) -> Client:
    """A client of the cloud that the `openstack` command is logged in to."""
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
    """The global option that every API has."""
    parser.add_argument(
        "--os-stoker-api-version",
        metavar="<stoker-api-version>",
        default=utils.env("OS_STOKER_API_VERSION", default=DEFAULT_API_VERSION),
        help=f"Version of Stoker's own API (default: {DEFAULT_API_VERSION})",
    )
    return parser
