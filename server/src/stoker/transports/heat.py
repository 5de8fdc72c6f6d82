"""The APIs of Heat and CloudFormation, which agents poll and to which they report as users of their resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Login, Platform, TransportTarget


@dataclass(frozen=True, slots=True)
class PollServerHeat:
    """The metadata transport ``POLL_SERVER_HEAT``."""

    metadata_name: str = "POLL_SERVER_HEAT"
    logs_in: bool = True

    def sections(self, _tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Mapping[str, Any]]:
        """Return the section ``heat``: the login and the resource."""
        place = {"stack_id": f"{target.stack_name}/{target.stack_id}", "resource_name": target.resource_name}
        return {"heat": {**login_keys(platform, platform.login(target)), **place}}


@dataclass(frozen=True, slots=True)
class HeatSignal:
    """
    The signal transport ``HEAT_SIGNAL``: the agent logs in as the user of the deployment's resource.

    The call of upstream agents does not name the run. Stoker's own users belong to one run each; users at a Keystone do
    not.
    """

    signal_name: str = "HEAT_SIGNAL"
    logs_in: bool = True
    awaits_signal: bool = True

    def signal_inputs(self, _tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Any]:
        """Return the login; the agent knows the resource from other ``deploy_*`` inputs."""
        return login_inputs(platform, target)


def login_inputs(platform: Platform, target: TransportTarget) -> dict[str, Any]:
    """Return the ``deploy_*`` inputs with which an agent logs in as the target's user."""
    login = platform.login(target)
    keys = {**login_keys(platform, login), "username": login.username}
    return {f"deploy_{name}": value for name, value in keys.items()}


def login_keys(platform: Platform, login: Login) -> dict[str, str]:
    """Return what logging in to Keystone needs, under the names of a section of ``os-collect-config``."""
    return {
        "user_id": login.user_id,
        "password": login.password,
        "auth_url": platform.auth_url,
        "project_id": login.project_id,
        "region_name": platform.region,
    }


@dataclass(frozen=True, slots=True)
class PollServerCfn:
    """The metadata transport ``POLL_SERVER_CFN``: ``DescribeStackResource`` with the server's own EC2 key."""

    metadata_name: str = "POLL_SERVER_CFN"

    def sections(self, _tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Mapping[str, Any]]:
        """Return the section ``cfn``: the API's URL, the EC2 key and the resource."""
        login = platform.login(target)
        return {
            "cfn": {
                "metadata_url": f"{platform.public_url}/cfn/v1/",
                "access_key_id": login.access_key,
                "secret_access_key": login.secret_key,
                "stack_name": target.stack_name,
                "path": f"{target.resource_name}.Metadata",
            }
        }


@dataclass(frozen=True, slots=True)
class CfnSignal:
    """The signal transport ``CFN_SIGNAL``."""

    signal_name: str = "CFN_SIGNAL"
    awaits_signal: bool = True

    def signal_inputs(self, _tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Any]:
        """Return the signed URL and the method ``POST``."""
        return {"deploy_signal_id": platform.signed_url(target, "signal", "POST"), "deploy_signal_verb": "POST"}


TRANSPORTS = (PollServerHeat(), HeatSignal(), PollServerCfn(), CfnSignal())
