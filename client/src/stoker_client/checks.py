"""The checks API, a Stoker extension: whether servers still are as deployments left them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stoker_client.collection import ReadOnlyCollection, part
from stoker_client.shapes import Check, Deployment
from stoker_client.updates import attempts

if TYPE_CHECKING:
    from stoker_client.wire import Wire

IN_SYNC, DRIFTED, UNKNOWN, UNSUPPORTED = "IN_SYNC", "DRIFTED", "UNKNOWN", "UNSUPPORTED"
STATES = (IN_SYNC, DRIFTED, UNKNOWN, UNSUPPORTED)
ONLINE = "ONLINE"
#: Deployments of one request, so that its URL stays short.
_PORTION = 50


class Checks(ReadOnlyCollection[Check]):
    """
    The last checks of deployments, in the order of the deployments; ``ref`` is a deployment's id.

    Lists have no differences. Filters: ``state``, ``stack``, ``server`` (ids or names).
    """

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/checks", "check", id_key="deployment_id", has_pages=True)

    def repair(self, deployment_id: str) -> Deployment:
        """Run a deployment that has drifted again, and return it."""
        return part(self._act(deployment_id, "repair", {}), "software_deployment")

    def request(
        self,
        *,
        stack: str | None = None,
        servers: Sequence[str] | None = None,
        selector: str | None = None,
    ) -> list[Check]:
        """Request the checks of a stack, of servers, or of selected servers, and return them as they are."""
        body: dict[str, Any] = {"stack": stack, "servers": servers, "selector": selector}
        answer = self.wire.send("POST", "/checks", {name: value for name, value in body.items() if value})
        return part(answer, "checks")

    def wait(self, requested: Sequence[Check], seconds: float) -> list[Check]:
        """Return the checks when all agents that are online have answered, or after ``seconds``."""
        checks = {check["deployment_id"]: check for check in requested}
        for _ in attempts(time.monotonic() + seconds):
            waiting = [id_ for id_ in checks if awaits_answer(checks[id_])]
            if not waiting:
                break
            present = {check["deployment_id"]: check for check in self._several(waiting)}
            # A deployment that was deleted meanwhile is no longer listed.
            checks = {
                id_: present.get(id_, checks[id_]) for id_ in checks if id_ in present or not awaits_answer(checks[id_])
            }
        return list(checks.values())

    def _several(self, deployment_ids: Sequence[str]) -> Iterator[Check]:
        """Yield the checks of these deployments."""
        for start in range(0, len(deployment_ids), _PORTION):
            query = {"deployment_id": deployment_ids[start : start + _PORTION]}
            yield from part(self.wire.get("/checks", query, patient=True), "checks")


def awaits_answer(check: Check) -> bool:
    """Whether an agent that is online has not answered the request yet."""
    return check["pending"] and check["server_status"] == ONLINE


def state_of(check: Mapping[str, Any]) -> str:
    """Return the state, which is unknown while a request has no answer, or no agent reports whether it has changed."""
    is_stale = check["state"] == IN_SYNC and check["server_status"] not in (ONLINE, None)
    return UNKNOWN if check["pending"] or is_stale else str(check["state"])
