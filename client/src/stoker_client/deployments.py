"""The APIs of software configs, and of software deployments with their logs and events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stoker_client.collection import Collection, choose, is_id, part
from stoker_client.errors import BadInput, NoEvents, NotFound
from stoker_client.shapes import Config, Deployment, LogChunk, LogPage, Run
from stoker_client.stacks import Stacks
from stoker_client.updates import Event, attempts, follow

if TYPE_CHECKING:
    from stoker_client.wire import Wire

HOLD = 25  # seconds that the service may delay an answer; well below the timeouts of common proxies
RUNNING = "IN_PROGRESS"
DEPLOYMENT_TYPES = ("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment")
#: An input that every derived config has and no source config needs: the server of the copy.
DERIVED = "deploy_server_id"
_NEVER = 2**31 - 1  # the largest sequence number that services accept; no log chunk has a larger one


class Configs(Collection[Config]):
    """Software configs. Names never match derived configs."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/software_configs", "config", key="software_config")

    def all(self, *, derived: bool = False, **_: object) -> list[Config]:
        """
        Return the configs of the project without their contents, newest first.

        ``derived`` includes derived configs, which have the names of their sources.
        """
        return super().all(derived="true" if derived else "false")

    def delete_derived(self, id_: str) -> None:
        """Delete a derived config after its deployment was deleted. Source configs and missing ids are ignored."""
        try:
            if any(entry.get("name") == DERIVED for entry in self.show(id_).get("inputs") or []):
                self.delete(id_)
        except NotFound:
            return


class Deployments(Collection[Deployment]):
    """Software deployments. ``ref`` may also be ``STACK/RESOURCE``."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/software_deployments", "deployment", key="software_deployment")

    def all(self, *, server_id: str | None = None, contains: str | None = None, **_: object) -> list[Deployment]:
        """
        Return the deployments of the project, or of one server, oldest first.

        ``contains`` is a part of the config's name.

        Stoker names what a deployment belongs to, as in ``show``; Heat does not.
        """
        return super().all(server_id=server_id, contains=contains, names="true")

    def find_id(self, ref: str) -> str:
        """Return the id of a deployment. Raises NotFound or Ambiguous."""
        if is_id(ref):
            return ref
        if "/" in ref:
            return self._id_of_resource(ref)
        deployments = self.all()
        if all("config_name" in deployment for deployment in deployments):
            names = {deployment["config_id"]: deployment["config_name"] for deployment in deployments}
        else:  # Heat
            names = {config["id"]: config["name"] for config in Configs(self._wire).all(derived=True)}
        named = [{**deployment, "name": names.get(deployment["config_id"])} for deployment in deployments]
        return str(choose(named, ref, "deployment")["id"])

    def _id_of_resource(self, ref: str) -> str:
        resource = Stacks(self._wire).resource(ref)
        if resource["resource_type"] not in DEPLOYMENT_TYPES:
            kind = resource["resource_type"]
            raise BadInput(
                f"{ref} is not a deployment but an {kind}; `stoker stack resources` lists the resources of a stack"
            )
        return str(resource.get("physical_resource_id"))

    def show(self, ref: str, *, patient: bool = False, **_: object) -> Deployment:
        """Return one deployment, with the names of what it belongs to."""
        return super().show(ref, patient=patient, names="true")

    def delete(self, ref: str, *, force: bool = False) -> None:
        """
        Delete a deployment. Its derived config remains until ``Configs.delete_derived``.

        With ``force``, no run undoes the deployment first.
        """
        query = "?force=true" if force else ""
        self._at(ref, lambda path: self._wire.send("DELETE", path + query))

    def runs(self, id_: str) -> list[Run]:
        """Return all runs of a deployment, newest first."""
        return part(self._at(id_, lambda path: self._wire.get(f"{path}/runs")), "runs")

    def cancel(self, id_: str, *, force: bool = False) -> Deployment:
        """Cancel the active run. With ``force``, the run ends without a confirmation from its agent."""
        return self._one(self._act(id_, "cancel", {"force": True} if force else {}))

    def retry(self, id_: str) -> Deployment:
        """Run a failed deployment again, with the same id."""
        return self._one(self._act(id_, "retry", {}))

    def log_page(self, id_: str, after: int = 0, *, wait: int = 0) -> LogPage:
        """
        Return the log after the sequence number ``after``.

        ``wait`` is the number of seconds that the service may delay its answer until output arrives or the run ends.
        """
        query = {"after": after, "wait": wait or None}
        page = self._at(id_, lambda path: self._wire.get(f"{path}/logs", query, patient=bool(wait), wait=wait))
        part(page, "logs")
        return page

    def logs(self, id_: str) -> Iterator[LogChunk]:
        """Yield the log so far."""
        for page in self._pages(id_, 0):
            yield from page["logs"]

    def stream_bytes(self, id_: str, stream: str, run: str | None = None) -> bytes:
        """Return the stored bytes of ``stdout`` or ``stderr``, of the run with the config ``run`` or of the newest."""
        return self._at(id_, lambda path: self._wire.get_bytes(f"{path}/logs/{stream}", {"run": run}))

    def _pages(self, id_: str, after: int, *, wait: int = 0) -> Iterator[LogPage]:
        """Yield the pages of the log after ``after``, up to the first one without output."""
        while True:
            page = self.log_page(id_, after, wait=wait)
            yield page
            if not page["logs"]:
                return
            after = page["next"]

    def events(self, id_: str) -> Iterator[Event]:
        """Yield events until the deployment ends: ``log``, ``progress``, ``status``, and finally ``end``."""
        return follow(self._wire, [f"deployment:{self.find_id(id_)}"])

    def stream(self, id_: str) -> Iterator[LogChunk]:
        """Yield the log so far and new chunks until the deployment ends."""
        try:
            for event in self.events(id_):
                if event.name == "log":
                    yield event.json()
        except (NoEvents, NotFound):  # an older service; only the first request raises these, before any event
            for page in self.follow(id_):
                yield from page["logs"]

    def wait(self, id_: str) -> None:
        """Return when the deployment has ended."""
        for _ in self.follow(id_, after=_NEVER):
            pass

    def follow(self, id_: str, after: int = 0) -> Iterator[LogPage]:
        """Yield pages of the log after ``after`` until the deployment has ended and its log is complete."""
        for _ in attempts(share=1):
            for page in self._pages(id_, after, wait=HOLD):
                yield page
            after = page["next"]
            if page["status"] != RUNNING:
                return


def name_of(deployment: Deployment) -> str:
    """Return ``STACK/RESOURCE`` or the name of the config; without names, as Heat's API, the id."""
    if deployment.get("resource_name"):
        return f"{deployment.get('stack_name')}/{deployment['resource_name']}"
    return deployment.get("config_name") or deployment["id"]


def server_name_of(deployment: Deployment) -> str:
    """Return the name of the deployment's server, or its id if the service does not know the name."""
    return deployment.get("server_name") or deployment["server_id"]


def requester_of(run: Mapping[str, Any]) -> str | None:
    """Return who requested a run: a user, or the stack that the deployment belongs to. Heat's API does not say it."""
    return run["requested_by"] or "the stack" if "requested_by" in run else None
