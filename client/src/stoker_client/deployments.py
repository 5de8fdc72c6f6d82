"""The APIs of software configs, and of software deployments with their logs and events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stoker_client.collection import Anything, Collection, RunCollection, choose, is_id, part
from stoker_client.errors import BadInput, NotFound
from stoker_client.servers import Servers
from stoker_client.shapes import Deployment, LogChunk, Run
from stoker_client.stacks import Stacks

if TYPE_CHECKING:
    from stoker_client.wire import Wire

RUNNING = "IN_PROGRESS"
DEPLOYMENT_TYPES = ("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment")
#: An input that every derived config has and no source config needs: the server of the copy.
DERIVED = "deploy_server_id"


class Configs(Collection[Anything]):
    """Software configs. Names never match derived configs."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/software_configs", "config", key="software_config")

    def all(self, *, limit: int | None = None, derived: bool = False, **query: Any) -> list[Anything]:
        """
        Return the configs of the project without their contents, newest first.

        ``derived`` includes derived configs, which have the names of their sources.
        """
        return super().all(limit=limit, derived="true" if derived else "false", **query)

    def delete_derived(self, id_: str) -> None:
        """Delete a derived config after its deployment was deleted. Source configs and missing ids are ignored."""
        try:
            if any(entry.get("name") == DERIVED for entry in self.show(id_).get("inputs") or []):
                self.delete(id_)
        except NotFound:
            return


class Deployments(RunCollection[Deployment]):
    """Software deployments, with the names of what they belong to. ``ref`` may also be ``STACK/RESOURCE``."""

    def __init__(self, wire: Wire) -> None:
        query = {"names": "true"}
        super().__init__(wire, "/software_deployments", "deployment", key="software_deployment", query=query)

    def all(self, *, limit: int | None = None, server: str | None = None, **query: Any) -> list[Deployment]:
        """
        Return the deployments of the project, or of one server, oldest first.

        Filters: ``config`` (a name or an id), ``status``, and ``contains``, a part of the config's name.
        """
        server_id = None if server is None else Servers(self.wire).find_id(server)
        return super().all(limit=limit, server_id=server_id, **query)

    def find_id(self, ref: str) -> str:
        """Return the id of a deployment. Raises NotFound or Ambiguous."""
        if is_id(ref):
            return ref
        if "/" in ref:
            return self._id_of_resource(ref)
        named = [{**deployment, "name": deployment.get("config_name")} for deployment in self.all()]
        return str(choose(named, ref, "deployment")["id"])

    def _id_of_resource(self, ref: str) -> str:
        resource = Stacks(self.wire).resource(ref)
        if resource["resource_type"] not in DEPLOYMENT_TYPES:
            kind = resource["resource_type"]
            raise BadInput(
                f"{ref} is not a deployment but an {kind}; `stoker stack resources` lists the resources of a stack"
            )
        return str(resource.get("physical_resource_id"))

    def delete(self, ref: str, *, force: bool = False) -> None:
        """
        Delete a deployment. Its derived config remains until ``Configs.delete_derived``.

        With ``force``, no run undoes the deployment first.
        """
        query = "?force=true" if force else ""
        self._at(ref, lambda path: self.wire.send("DELETE", path + query))

    def runs(self, id_: str) -> list[Run]:
        """Return all runs of a deployment, newest first."""
        return part(self._at(id_, lambda path: self.wire.get(f"{path}/runs")), "runs")

    def retry(self, id_: str) -> Deployment:
        """Run a failed deployment again, with the same id."""
        return self._one(self._act(id_, "retry", {}))

    def log_pages(self, id_: str) -> Iterator[Anything]:
        """Yield the log so far, page by page. The last page has no output."""
        path, after, logs = f"{self._path_of(self.find_id(id_))}/logs", 0, True
        while logs:
            page = self.wire.get(path, {"after": after})
            after, logs = part(page, "next"), part(page, "logs")
            yield page

    def logs(self, id_: str) -> Iterator[LogChunk]:
        """Yield the log so far."""
        return (chunk for page in self.log_pages(id_) for chunk in page["logs"])

    def stream_bytes(self, id_: str, stream: str, run: str | None = None) -> bytes:
        """Return the stored bytes of ``stdout`` or ``stderr``, of the run with the config ``run`` or of the newest."""
        return self._at(id_, lambda path: self.wire.get_bytes(f"{path}/logs/{stream}", {"run": run}))

    def wait(self, id_: str) -> None:
        """Return when the run has ended."""
        for _ in self.events(id_, ["status"]):
            pass


def name_of(thing: Mapping[str, Any]) -> str:
    """Return ``STACK/RESOURCE`` for a deployment, or that of a check; else the name of its config, or its id."""
    if thing.get("resource_name"):
        return f"{thing.get('stack_name')}/{thing['resource_name']}"
    return str(thing.get("config_name") or thing.get("name") or thing.get("id") or thing["deployment_id"])


def server_name_of(deployment: Mapping[str, Any]) -> str:
    """Return the name of the server of a deployment or a check, or its id if the service does not know the name."""
    return str(deployment.get("server_name") or deployment["server_id"])


def requester_of(run: Mapping[str, Any]) -> str:
    """Return who requested a run: a user, or the stack that the deployment belongs to."""
    return run.get("requested_by") or "the stack"
