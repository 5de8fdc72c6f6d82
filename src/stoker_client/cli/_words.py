"""The last thing that a running deployment said, for live views."""

from stoker_client.cli._failures import DEPLOYMENT_TYPES
from stoker_client.deployments import Deployments
from stoker_client.errors import Refused
from stoker_client.shapes import LiveDeployment, Resource


class LastWords:
    """Last log lines: from the resource itself when it tells them, else asked for deployment by deployment."""

    def __init__(self, deployments: Deployments) -> None:
        self._deployments = deployments
        self._after: dict[str, int] = {}
        self._words: dict[str, str] = {}
        self._silent = False  # a service without logs (Heat) is not asked twice

    def __call__(self, resource: Resource) -> str:
        """One line, or nothing."""
        told = resource.get("deployment")
        if told is not None:
            return _told(told)
        id_ = resource.get("physical_resource_id")
        if self._silent or not id_ or resource["resource_type"] not in DEPLOYMENT_TYPES:
            return ""
        return self._asked(id_)

    def _asked(self, id_: str) -> str:
        try:
            page = self._deployments.log_page(id_, self._after.get(id_, 0))
        except Refused:
            self._silent = True
            return ""
        self._after[id_] = page["next"]
        said = last_line("".join(chunk["data"] for chunk in page["logs"]))
        self._words[id_] = said or self._words.get(id_) or page.get("status_reason") or ""
        return self._words[id_]


def _told(deployment: LiveDeployment) -> str:
    progress = deployment.get("progress") or {}
    percent = progress.get("percent")
    said = last_line(deployment.get("last_log") or "") or progress.get("message") or deployment.get("status_reason")
    return f"{percent:g} %  {said or ''}".rstrip() if percent is not None else said or ""


def last_line(text: str) -> str:
    """The last line of ``text`` with something in it."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
