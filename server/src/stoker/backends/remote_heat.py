"""
Clients for the Heats that OS::Heat::Stack uses: this site, and the regions that the setting ``remote_heats`` names.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoker import cloud_entries
from stoker.failures import ServiceUnavailable
from stoker.model.errors import Invalid
from stoker.service_client import ServiceClient

if TYPE_CHECKING:
    from keystoneauth1.plugin import BaseAuthPlugin
    from keystoneauth1.session import Session


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of a Heat API: the HTTP status and the decoded body."""

    status: int
    #: None if the response has no JSON body.
    body: Any


class RemoteHeatClient:
    """
    Sends requests to this site's Heat API and to remote ones.

    ``regions``: names of entries in clouds.yaml by region. ``token_of`` returns one of Stoker's own tokens for a
    project; None if users are stored in Keystone. In this case, ``owner_login`` returns the login for the owner of the
    stack with this root id; without it, this site's API cannot be used. ``ca_file`` verifies ``public_url`` if the
    system does not trust its CA.
    """

    def __init__(
        self,
        public_url: str,
        region: str,
        regions: Mapping[str, str],
        token_of: Callable[[str], str | None] | None,
        ca_file: Path | None = None,
        owner_login: Callable[[str], BaseAuthPlugin] | None = None,
    ) -> None:
        self._region = region
        self._regions = regions
        self._root, self._ca_file = f"{public_url}/v1", ca_file
        self._token_of, self._owner_login = token_of, owner_login
        self._lock = threading.Lock()
        #: Clients by region; None: this site.
        self._clients: dict[str | None, ServiceClient] = {}

    def problem(self, region: str | None) -> str | None:
        """Return why the region cannot be used; None if it can. ``region`` None: this site."""
        if not self.is_local(region):
            is_known = region in self._regions
            return None if is_known else f"public endpoint for orchestration service in {region} region not found"
        if self._token_of is None and self._owner_login is None:
            return (
                "OS::Heat::Stack needs the region_name of another Heat here: with users at a Keystone and the"
                " setting cloud, Stoker cannot act for them"
            )
        return None

    def remedy(self) -> str:
        """Return which regions can be used."""
        return f"The setting remote_heats has these regions: {', '.join(sorted(self._regions)) or 'none'}."

    def is_local(self, region: str | None) -> bool:
        """Return whether the region is this site's."""
        return region in (None, self._region)

    def ask(self, region: str | None, project_id: str, root_id: str, verb: str, path: str, body: Any = None) -> Answer:
        """
        Send a request to ``path`` below the project's root URL, for the owner of the stack ``root_id``.

        Raises ServiceUnavailable and ServiceRejected.
        """
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        client = self._client(None if self.is_local(region) else region)
        if self.is_local(region):
            path = f"/{project_id}{path}"
        login_id = root_id if self._token_of is None else project_id
        answer = client.send(verb, path, project_id=login_id, content=content, headers=headers)
        if answer.status_code in (301, 302) and verb == "GET":
            rest = answer.headers["Location"].removeprefix(client.root)
            answer = client.send(verb, rest, project_id=login_id, headers=headers)
        try:
            payload = answer.json() if answer.content else None
        except ValueError:
            payload = None
        return Answer(answer.status_code, payload)

    def _client(self, region: str | None) -> ServiceClient:
        with self._lock:
            if region not in self._clients:
                opened = self._open_local() if region is None else _open_remote(self._regions[region])
                self._clients[region] = opened
            return self._clients[region]

    def _open_local(self) -> ServiceClient:
        from stoker.backends.logins import log_in_projects, open_session  # imported late, because most sites need none

        login = log_in_projects(self._token_of) if self._token_of else self._owner_login
        return ServiceClient(self._root, partial(open_session, ca_file=self._ca_file), login)


def _open_remote(cloud: str) -> ServiceClient:
    """Return the client for the Heat in the catalog of a cloud. Raises ServiceUnavailable and ServiceRejected."""
    keystone = ServiceClient(f"the cloud {cloud}", partial(cloud_entries.open_session, cloud, "remote_heats"))

    def find(session: Session) -> tuple[Session, str | None]:
        region = cloud_entries.read(cloud, "remote_heats").get("region_name") or None
        return session, session.get_endpoint(service_type="orchestration", region_name=region)

    session, url = keystone.call(find)
    if not url:
        raise ServiceUnavailable(f"the cloud {cloud} has no orchestration service in its region")
    return ServiceClient(url.rstrip("/"), lambda: session)


def regions_of(setting: str) -> dict[str, str]:
    """Parse the setting ``remote_heats``: ``RegionTwo=cloud, …``. Raises Invalid."""
    regions: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in setting.split(","))):
        region, equals, cloud = (part.strip() for part in entry.partition("="))
        if not (region and equals and cloud):
            raise Invalid(f"remote_heats must be like RegionTwo=name-in-clouds.yaml, …, not {entry!r}")
        regions[region] = cloud
    return regions
