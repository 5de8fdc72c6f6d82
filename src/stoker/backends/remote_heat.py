"""
Clients for the Heats that OS::Heat::Stack uses: this site, and the regions that the setting ``remote_heats`` names.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stoker.backends.logins import CloudLogin, StokerLogin
from stoker.backends.service_client import ServiceClient
from stoker.model.errors import Invalid
from stoker.resources.env import Answer


class RemoteHeatClient:
    """
    Sends requests to this site's Heat API and to remote ones.

    ``regions``: names of entries in clouds.yaml by region. ``token_of`` returns one of Stoker's own tokens for a
    project; None if users are stored in Keystone, so that this site's API cannot be used. ``ca_file`` verifies
    ``public_url`` if the system does not trust its CA.
    """

    def __init__(
        self,
        public_url: str,
        region: str,
        regions: Mapping[str, str],
        token_of: Callable[[str], str | None] | None,
        ca_file: Path | None = None,
    ) -> None:
        self._region = region
        self._regions = regions
        self._local = ServiceClient(f"{public_url}/v1", StokerLogin(token_of), ca_file) if token_of else None
        self._lock = threading.Lock()
        self._remote: dict[str, ServiceClient] = {}

    def problem(self, region: str | None) -> str | None:
        """Return why the region cannot be used; None if it can. ``region`` None: this site."""
        if region in (None, self._region):
            if self._local is None:
                return "OS::Heat::Stack needs a region_name here: users are kept at a Keystone"
            return None
        if region not in self._regions:
            regions = ", ".join(sorted(self._regions)) or "none"
            return (
                f"context.region_name: there is no region {region!r} in the setting remote_heats (there are: {regions})"
            )
        return None

    def is_local(self, region: str | None) -> bool:
        """Return whether the region is this site's."""
        return region in (None, self._region)

    def ask(self, region: str | None, project_id: str, verb: str, path: str, body: Any = None) -> Answer:
        """Send a request to ``path`` below the project's root URL. Raises ServiceUnavailable and ServiceRejected."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if region in (None, self._region):
            assert self._local is not None, "problem() was asked"
            client, path = self._local, f"/{project_id}{path}"
        else:
            client = self._client(region or "")
        answer = client.send_request(verb, path, project_id=project_id, content=content, headers=headers)
        if answer.status_code in (301, 302) and verb == "GET":
            rest = answer.headers["Location"].removeprefix(client.root)
            answer = client.send_request(verb, rest, project_id=project_id, headers=headers)
        try:
            payload = answer.json() if answer.content else None
        except ValueError:
            payload = None
        return Answer(answer.status_code, payload)

    def _client(self, region: str) -> ServiceClient:
        with self._lock:
            if region not in self._remote:
                login = CloudLogin(self._regions[region])
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
