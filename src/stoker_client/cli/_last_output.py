"""The last output line of running deployments, for live views."""

from stoker_client.deployments import DEPLOYMENT_TYPES, Deployments
from stoker_client.errors import Refused
from stoker_client.shapes import LiveDeployment, Resource


class LastOutput:
    """Returns last log lines: from the resource if the service includes them, else by a request per deployment."""

    def __init__(self, deployments: Deployments) -> None:
        self._deployments = deployments
        self._after: dict[str, int] = {}
        self._words: dict[str, str] = {}
        self._silent = False  # a service without logs (Heat) is asked only once

    def __call__(self, resource: Resource) -> str:
        """Return one line, or ""."""
        deployment = resource.get("deployment")
        if deployment is not None:
            return _format(deployment)
        id_ = resource.get("physical_resource_id")
        if self._silent or not id_ or resource["resource_type"] not in DEPLOYMENT_TYPES:
            return ""
        return self._fetch(id_)

    def _fetch(self, id_: str) -> str:
        try:
            page = self._deployments.log_page(id_, self._after.get(id_, 0))
        except Refused:
            self._silent = True
            return ""
        self._after[id_] = page["next"]
        line = last_line("".join(chunk["data"] for chunk in page["logs"]))
        self._words[id_] = line or self._words.get(id_) or page.get("status_reason") or ""
        return self._words[id_]


def _format(deployment: LiveDeployment) -> str:
    return last_line(deployment.get("last_log") or "") or deployment.get("status_reason") or ""


def last_line(text: str) -> str:
    """Return the last line of ``text`` that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
