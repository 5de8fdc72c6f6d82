"""The client: one attribute a noun."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from stoker_client.audit import Audit
from stoker_client.configs import Configs
from stoker_client.deployments import Deployments
from stoker_client.identity import Identity
from stoker_client.schedules import Schedules
from stoker_client.servers import Servers
from stoker_client.stacks import Stacks
from stoker_client.templates_api import Templates
from stoker_client.triggers import Triggers

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Client:
    """A logged-in client. Objects come and go as the API's dictionaries (see ``shapes``)."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.stacks = Stacks(wire)
        self.configs = Configs(wire)
        self.deployments = Deployments(wire)
        self.servers = Servers(wire)
        self.templates = Templates(wire)
        self.triggers = Triggers(wire)
        self.schedules = Schedules(wire)
        self.audit = Audit(wire)
        self.identity = Identity(wire)

    def close(self) -> None:
        """Let go of the connections."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(cloud: str | None = None) -> Client:
    """A client of ``cloud``, or of the cloud that ``OS_CLOUD``, ``OS_*`` or ``clouds.yaml`` choose."""
    from stoker_client.clouds import open_wire  # openstacksdk takes 0.2 s to import: not for users of Wire alone

    return Client(open_wire(cloud))
