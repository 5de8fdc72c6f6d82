"""Heats that OS::Heat::Stack asks: this one, and those of other regions, by their entries of clouds.yaml."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from stoker.external.logins import Cloud, Ours
from stoker.external.peer import Peer
from stoker.model.errors import Invalid
from stoker.resources.services import Answer


class Heats:
    """
    ``regions``: names of regions, each with the name of its entry. ``token_of`` gives Stoker's own token for a
    project; None where users are kept elsewhere, so that this Heat cannot be asked.
    """

    def __init__(
        self, public_url: str, region: str, regions: Mapping[str, str], token_of: Callable[[str], str | None] | None
    ) -> None:
        self._region = region
        self._regions = regions
        self._here = Peer(f"{public_url}/v1", Ours(token_of)) if token_of else None
        self._lock = threading.Lock()
        self._there: dict[str, Peer] = {}

    def problem(self, region: str | None) -> str | None:
        if region in (None, self._region):
            if self._here is None:
                return "OS::Heat::Stack needs a region_name here: users are kept at a Keystone"
            return None
        if region not in self._regions:
            known = ", ".join(sorted(self._regions)) or "none"
            return (
                f"context.region_name: there is no region {region!r} in the setting remote_heats (there are: {known})"
            )
        return None

    def ask(self, region: str | None, project_id: str, verb: str, path: str, body: Any = None) -> Answer:
        """Raises PeerAway and PeerRefused."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if region in (None, self._region):
            assert self._here is not None, "problem() was asked"
            peer, path = self._here, f"/{project_id}{path}"
        else:
            peer = self._peer(region or "")
        answer = peer.ask(verb, path, project_id=project_id, content=content, headers=headers)
        if answer.status_code in (301, 302) and verb == "GET":
            rest = answer.headers["Location"].removeprefix(peer.root)
            answer = peer.ask(verb, rest, project_id=project_id, headers=headers)
        try:
            said = answer.json() if answer.content else None
        except ValueError:
            said = None
        return Answer(answer.status_code, said)

    def _peer(self, region: str) -> Peer:
        with self._lock:
            if region not in self._there:
                login = Cloud(self._regions[region])
                self._there[region] = Peer(login.endpoint("orchestration").rstrip("/"), login)
            return self._there[region]


def regions_of(said: str) -> dict[str, str]:
    """From ``RegionTwo=cloud, …``. Raises Invalid."""
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in said.split(","))):
        region, equals, cloud = (part.strip() for part in entry.partition("="))
        if not (region and equals and cloud):
            raise Invalid(f"remote_heats must be like RegionTwo=name-in-clouds.yaml, …, not {entry!r}")
        found[region] = cloud
    return found
