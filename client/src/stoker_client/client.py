"""The client: one attribute per API, and the APIs that are small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from stoker_client.checks import Checks
from stoker_client.collection import Anything, Collection, ReadOnlyCollection, Versions, part, segment
from stoker_client.deployments import Configs, Deployments
from stoker_client.servers import Servers
from stoker_client.shapes import Trigger
from stoker_client.stacks import Stacks
from stoker_client.triggers import Triggers
from stoker_client.updates import Event, follow

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
        self.enrollments: Collection[Anything] = Collection(wire, "/enrollments", "enrollment")
        self.templates = Templates(wire)
        self.triggers = Triggers(wire)
        #: Triggers at set times.
        self.schedules = Schedules(wire)
        self.catalog = Versions(wire, "/catalog", "catalog entry", key="entry", plural="entries")
        #: Stored hooks. Their ``content`` is base64.
        self.hooks = Versions(wire, "/hooks", "hook")
        #: Entries of the audit log, newest first: of the project, and of no project.
        self.audit = ReadOnlyCollection[Anything](wire, "/audit", "audit", plural="audit", has_pages=True)
        self.site_audit = ReadOnlyCollection[Anything](wire, "/audit/site", "audit", plural="audit", has_pages=True)
        self.identity = Identity(wire.to("identity"))

    def health(self) -> dict[str, Any]:
        """Return the service's health report. Raises Refused if the service is unhealthy."""
        return dict(self.wire.get(f"{self.wire.root_url}/healthz") or {})

    def overview(self) -> dict[str, dict[str, Any]]:
        """Return what needs attention in the project: by name, the ``count`` and the ``path`` of a list."""
        return part(self.wire.get("/overview"), "overview")

    def events(self, subjects: Sequence[str], kinds: Sequence[str] = (), cursor: str = "") -> Iterator[Event]:
        """
        Yield the events of subjects: ``trigger:<id>``, ``deployment:<id>``, ``stack:<id>``, ``overview``, ``servers``…

        The data of each names its ``subject``. Ends after the ``end`` of all of them. ``kinds`` selects events, and the
        stream continues after ``cursor``, which is that of a list.
        """
        return follow(self.wire, subjects, kinds, cursor)

    def console_code(self) -> str:
        """Return a code with which a browser signs in to the console as this user, once and within a minute."""
        answer = part(self.wire.send("POST", "/console_codes"), "console_code")
        return str(part(answer, "code"))

    def console_url(self, *path: str) -> str:
        """Return the URL of a page of the console, such as that of ``("triggers", id)``, in the client's project."""
        return "/".join((self.wire.root_url, "console", "p", *map(segment, (self.wire.project_id, *path))))

    def settings(self) -> list[dict[str, Any]]:
        """Return the settings of the service with their sources; for administrators of the site."""
        return part(self.wire.get("/settings"), "settings")

    def close(self) -> None:
        """Close all connections."""
        self.wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Schedules(Collection[Anything]):
    """Schedules, which create triggers."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/software_schedules", "schedule", key="software_schedule")

    def forecast(self, *, until: str | None = None, limit: int | None = None) -> tuple[list[Anything], bool]:
        """
        Return the next times of all schedules, and whether there are more.

        ``until``: the end of the range, such as ``2031-05-06T00:00:00Z``; by default a week from now.
        """
        answer = self.wire.get(f"{self.path}/forecast", {"until": until, "limit": limit})
        return part(answer, "forecast"), part(answer, "more")

    def run(self, ref: str) -> Trigger:
        """Start the trigger of a schedule now, and return it."""
        return part(self.wire.send("POST", f"{self.path}/{segment(self.find_id(ref))}/run"), "software_trigger")


class Identity:
    """Calls to Keystone. References are names, ids or prefixes of ids. Most calls require an administrator."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        #: The projects that the user may see.
        self.projects: Collection[Anything] = Collection(wire, "/projects", "project", wraps_body=True)
        self.users: Collection[Anything] = Collection(wire, "/users", "user", wraps_body=True)

    @property
    def credentials(self) -> Collection[Anything]:
        """The application credentials of the logged-in user."""
        path = f"/users/{segment(self._wire.user_id)}/application_credentials"
        return Collection(self._wire, path, "credential", key="application_credential", wraps_body=True)

    def grant(self, user: str, project: str | None, role: str) -> None:
        """Grant a role in a project, or with ``project`` None on the system: an administrator of the site."""
        self._wire.send("PUT", self._grant(user, project, role))

    def revoke(self, user: str, project: str | None, role: str) -> None:
        """Revoke a role in a project, or with ``project`` None on the system."""
        self._wire.send("DELETE", self._grant(user, project, role))

    def roles(self, user: str) -> list[Anything]:
        """Return the user's role assignments, with names of projects."""
        query = {"user.id": self.users.find_id(user), "include_names": "true"}
        return part(self._wire.get("/role_assignments", query), "role_assignments")

    def _grant(self, user: str, project: str | None, role: str) -> str:
        place = "/system" if project is None else f"/projects/{segment(self.projects.find_id(project))}"
        return f"{place}/users/{segment(self.users.find_id(user))}/roles/{segment(role)}"


class Templates:
    """Calls that need no stack."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def validate(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Validate a template. Return its description and parameters."""
        return self._wire.send("POST", "/validate", body)

    def versions(self) -> list[dict[str, Any]]:
        """Return the template versions."""
        return part(self._wire.get("/template_versions"), "template_versions")

    def functions(self, version: str) -> list[dict[str, Any]]:
        """Return the functions of a template version."""
        answer = self._wire.get(f"/template_versions/{segment(version)}/functions")
        return part(answer, "template_functions")

    def types(self) -> list[dict[str, Any]]:
        """Return all resource types with their descriptions."""
        answer = self._wire.get("/resource_types", {"with_description": "true"})
        return part(answer, "resource_types")

    def type(self, name: str) -> dict[str, Any]:
        """Return the schema of a resource type: properties and attributes."""
        return self._wire.get(f"/resource_types/{segment(name)}")

    def type_template(self, name: str) -> dict[str, Any]:
        """Return a template with one resource of the type."""
        query = {"template_type": "hot"}
        return self._wire.get(f"/resource_types/{segment(name)}/template", query)


def connect(cloud: str | None = None) -> Client:
    """
    Return a client of ``cloud``, or of the cloud that ``OS_CLOUD``, ``OS_*`` or ``clouds.yaml`` select.

    Raises NotConfigured.
    """
    from stoker_client.login import (
        open_wire,  # imported here because keystoneauth takes 0.2 s, and help texts need none
    )

    return Client(open_wire(cloud))
