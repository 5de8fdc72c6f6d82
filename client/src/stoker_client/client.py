"""The client: one attribute per API."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from stoker_client.checks import Checks
from stoker_client.collection import Anything, Collection, Versions
from stoker_client.configs import Configs
from stoker_client.deployments import Deployments
from stoker_client.identity import Identity
from stoker_client.servers import Servers
from stoker_client.shapes import Decision, Enrollment, Schedule
from stoker_client.stacks import Stacks
from stoker_client.templates_api import Templates
from stoker_client.triggers import Triggers

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Client:
    """
    A logged-in client. Arguments and results are the API's dictionaries (see ``shapes``).

    Example::

        with connect("stoker") as client:
            for stack in client.stacks.all():
                print(stack["stack_name"], stack["stack_status"])
    """

    def __init__(self, wire: Wire) -> None:
        #: The connection to the service's API, for commands of other packages.
        self.wire = wire
        self.stacks = Stacks(wire)
        self.configs = Configs(wire)
        self.deployments = Deployments(wire)
        self.checks = Checks(wire)
        self.relays: Collection[Anything] = Collection(wire, "/relays", "relay")
        self.servers = Servers(wire)
        self.enrollments: Collection[Enrollment] = Collection(wire, "/enrollments", "enrollment")
        self.templates = Templates(wire)
        self.triggers = Triggers(wire)
        #: Triggers at set times.
        self.schedules: Collection[Schedule] = Collection(
            wire, "/software_schedules", "schedule", key="software_schedule", wraps_body=True
        )
        self.catalog = Versions(wire, "/catalog", "catalog entry", key="entry", plural="entries")
        #: Stored hooks. Their ``content`` is base64.
        self.hooks = Versions(wire, "/hooks", "hook")
        #: Entries of the audit log, newest first: of the project, and of no project.
        self.audit: Collection[Decision] = Collection(wire, "/audit", "audit", plural="audit", has_pages=True)
        self.site_audit: Collection[Decision] = Collection(wire, "/audit/site", "audit", plural="audit", has_pages=True)
        self.identity = Identity(wire)

    def on_warning(self, callback: Callable[[str], None]) -> None:
        """Call ``callback`` with each warning that the service attaches to a successful answer."""
        self.wire.on_warning = callback

    @property
    def root_url(self) -> str:
        """The root URL of the service's paths."""
        return self.wire.root_url

    def health(self) -> dict[str, Any]:
        """Return the service's health report. Raises Refused if the service is unhealthy."""
        return dict(self.wire.get(f"{self.wire.root_url}/healthz") or {})

    def close(self) -> None:
        """Close all connections."""
        self.wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(cloud: str | None = None) -> Client:
    """
    Return a client of ``cloud``, or of the cloud that ``OS_CLOUD``, ``OS_*`` or ``clouds.yaml`` select.

    Raises NotConfigured.
    """
    from stoker_client.connection import (
        open_wire,
    )  # imported here because keystoneauth takes 0.2 s, and help texts do not need it

    return Client(open_wire(cloud))
