"""Selects the cloud from ``OS_CLOUD``, ``OS_*`` and ``clouds.yaml``, read by openstacksdk as in any OpenStack tool."""

import os
import warnings
from collections.abc import Mapping
from typing import Any

from keystoneauth1 import exceptions as ksa
from keystoneauth1.plugin import BaseAuthPlugin
from openstack import exceptions as sdk
from openstack.config import OpenStackConfig

from stoker_client import faults
from stoker_client.errors import NotConfigured
from stoker_client.login import SERVICE

OURS = "stoker"  # the entry that `stoker serve` writes at its first start
NONE = "defaults"  # the SDK's name for the default cloud if none is configured
SETUP = "run `stoker serve` (its first start writes the cloud `stoker`), or set OS_CLOUD or the other OS_* variables"


def read_cloud(cloud: str | None = None) -> tuple[BaseAuthPlugin, Mapping[str, Any]]:
    """
    Return the login and the connection of ``cloud``, or of the cloud that the environment selects.

    The connection is JSON: ``auth_url``, ``session`` for keystoneauth's Session, and ``adapter`` for its Adapter.
    Raises NotConfigured.
    """
    try:
        with warnings.catch_warnings():
            # warnings about the SDK's own plans do not concern the user
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            config = OpenStackConfig(app_name="stoker")
            region = config.get_one(cloud=_choose(config, cloud))
        session = region.get_session()
    except sdk.ConfigException as problem:
        raise NotConfigured(f"{faults.first_line(problem).rstrip('.')}; {SETUP}") from problem
    except ksa.ClientException as problem:
        raise faults.error_of_exception(problem, "the cloud") from problem
    adapter = {
        "service_type": SERVICE,
        "service_name": region.get_service_name(SERVICE),
        "interface": region.get_interface(SERVICE),
        "region_name": region.get_region_name(SERVICE),
        "endpoint_override": region.get_endpoint(SERVICE),
    }
    transport = {"verify": session.verify, "cert": session.cert, "timeout": session.timeout}
    auth_url = getattr(session.auth, "auth_url", None)
    return session.auth, {"auth_url": auth_url, "session": transport, "adapter": adapter}


def _choose(config: OpenStackConfig, cloud: str | None) -> str:
    """Return the argument, else the environment's choice, else the entry of `stoker serve`, else the only entry."""
    names = config.get_cloud_names()
    cloud_name = cloud or os.environ.get("OS_CLOUD")
    if cloud_name and cloud_name not in names:
        # For an unknown name, the SDK creates an empty cloud and then reports a missing password.
        raise NotConfigured(f"no clouds.yaml has a cloud {cloud_name!r}; {SETUP}")
    for candidate in (cloud_name, config.envvar_key, OURS):
        if candidate in names:
            return str(candidate)
    return _only(config)


def _only(config: OpenStackConfig) -> str:
    """Return the only entry of clouds.yaml. Raises NotConfigured if there are several."""
    if config.default_cloud is None:
        names = ", ".join(sorted(config.get_cloud_names()))
        raise NotConfigured(f"no cloud is chosen; set OS_CLOUD to one of: {names}")
    if config.default_cloud == NONE:
        raise NotConfigured(f"no cloud is configured; {SETUP}")
    return str(config.default_cloud)
