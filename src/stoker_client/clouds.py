"""Which cloud is meant: ``OS_CLOUD``, ``OS_*`` and ``clouds.yaml``, read by openstacksdk as for any OpenStack tool."""

import os
import warnings

from keystoneauth1 import exceptions as ksa
from keystoneauth1.adapter import Adapter
from openstack import exceptions as sdk
from openstack.config import OpenStackConfig

from stoker_client import faults
from stoker_client.errors import NotConfigured
from stoker_client.wire import Wire

SERVICE = "orchestration"
OURS = "stoker"  # the entry that `stoker serve` writes on its first start
NONE = "defaults"  # what the SDK calls the cloud that it makes up when there is none
SETUP = "run `stoker serve` (its first start writes the cloud `stoker`), or set OS_CLOUD or OS_AUTH_URL and its kin"


def open_wire(cloud: str | None = None) -> Wire:
    """A connection to the orchestration service of ``cloud``, or of the one that the environment chooses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PendingDeprecationWarning)  # the SDK warns of its own plans
            config = OpenStackConfig(app_name="stoker")
            region = config.get_one(cloud=_choose(config, cloud))
        return Wire(
            Adapter(
                region.get_session(),
                service_type=SERVICE,
                service_name=region.get_service_name(SERVICE),
                interface=region.get_interface(SERVICE),
                region_name=region.get_region_name(SERVICE),
                endpoint_override=region.get_endpoint(SERVICE),
            )
        )
    except sdk.ConfigException as problem:
        raise NotConfigured(f"{_first_line(problem)}; {SETUP}") from problem
    except ksa.ClientException as problem:
        raise faults.raised(problem, "the cloud") from problem


def _choose(config: OpenStackConfig, cloud: str | None) -> str:
    """The name given, then what the environment says, then ours, then the only one there is."""
    names = config.get_cloud_names()
    asked = cloud or os.environ.get("OS_CLOUD")
    if asked and asked not in names:
        # The SDK would make an empty cloud of a name that it does not know, and then miss a password in it.
        raise NotConfigured(f"no clouds.yaml has a cloud {asked!r}; {SETUP}")
    for candidate in (asked, config.envvar_key, OURS):
        if candidate in names:
            return str(candidate)
    return _only(config)


def _only(config: OpenStackConfig) -> str:
    """The single entry of clouds.yaml: where there is no choice, nobody has to make it."""
    if config.default_cloud is None:
        names = ", ".join(sorted(config.get_cloud_names()))
        raise NotConfigured(f"no cloud is chosen; set OS_CLOUD to one of: {names}")
    if config.default_cloud == NONE:
        raise NotConfigured(f"no cloud is configured; {SETUP}")
    return str(config.default_cloud)


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).splitlines()), type(problem).__name__).rstrip(".")
