"""
Clients for the Heats that OS::Heat::Stack uses: this site, and the regions that the setting ``remote_heats`` names.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.backends.service_client import CloudLogin, Login, ServiceClient, StokerLogin
from stoker.model.errors import Invalid


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
    project; None if users are stored in Keystone. In this case, ``owner_login`` acts for the owner of the stack with
    this root id; without it, this site's API cannot be used. ``ca_file`` verifies ``public_url`` if the system does not
    trust its CA.
    """

    def __init__(
        self,
        public_url: str,
        region: str,
        regions: Mapping[str, str],
        token_of: Callable[[str], str | None] | None,
        ca_file: Path | None = None,
        owner_login: Login | None = None,
    ) -> None:
        self._region = region
        self._regions = regions
        self._is_by_owner = token_of is None
        login = StokerLogin(token_of) if token_of else owner_login
        self._local = ServiceClient(f"{public_url}/v1", login, ca_file) if login else None
        self._lock = threading.Lock()
        self._remote: dict[str, ServiceClient] = {}

    def problem(self, region: str | None) -> str | None:
        """Return why the region cannot be used; None if it can. ``region`` None: this site."""
        if not self.is_local(region):
            is_known = region in self._regions
            return None if is_known else f"public endpoint for orchestration service in {region} region not found"
        if self._local is None:
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
        login_id = project_id
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.is_local(region):
            assert self._local is not None, "problem() was asked"
            client, path = self._local, f"/{project_id}{path}"
            login_id = root_id if self._is_by_owner else project_id
        else:
            client = self._client(region or "")
        answer = client.send_request(verb, path, project_id=login_id, content=content, headers=headers)
        if answer.status_code in (301, 302) and verb == "GET":
            rest = answer.headers["Location"].removeprefix(client.root)
            answer = client.send_request(verb, rest, project_id=login_id, headers=headers)
        try:
            payload = answer.json() if answer.content else None
        except ValueError:
            payload = None
        return Answer(answer.status_code, payload)

    def _client(self, region: str) -> ServiceClient:
        with self._lock:
            if region not in self._remote:
                login = CloudLogin(self._regions[region], "remote_heats")
                self._remote[region] = ServiceClient(login.endpoint("orchestration").rstrip("/"), login)
            return self._remote[region]


def regions_of(setting: str) -> dict[str, str]:
    """Parse the setting ``remote_heats``: ``RegionTwo=cloud, …``. Raises Invalid."""
    regions: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in setting.split(","))):
        region, equals, cloud = (part.strip() for part in entry.partition("="))
        if not (region and equals and cloud):
            raise Invalid(f"remote_heats must be like RegionTwo=name-in-clouds.yaml, …, not {entry!r}")
        regions[region] = cloud
    return regions
