"""/v1/{project}/enrollments: tokens with which machines become servers, and the approval of these servers."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta

from stoker.addresses import is_loopback_url
from stoker.deployments import server_runs
from stoker.http import audit_trail
from stoker.http.contracts import (
    Answer,
    Body,
    Count,
    Id,
    Name,
    Positive,
    RequiredName,
    Text,
    Time,
    described,
    fill,
    operation,
)
from stoker.http.request import RequestContext
from stoker.http.stoker.servers import ShownServer, find_locked, serialize
from stoker.model.errors import Invalid
from stoker.model.server import Enrollment, NameSource, check_labels
from stoker.servers import enrollment
from stoker.servers.agent_bundle import Download, Endpoint
from stoker.store import servers
from stoker.store.tx import Tx

_LOOPBACK = (
    "Only the machine that Stoker runs on can reach {url}: for other machines start `stoker serve` with --host and"
    " --tls-cert, or with --public-url (docs/operations.md)"
)
_DAY = 24 * 3600
#: Without a login, which the shell's history and the logs of cloud-init would keep.
_PROXY = re.compile(r"http://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?")

#: Seconds.
Lifetime = Annotated[int, Meta(ge=60, le=365 * _DAY)]
Limit = Annotated[int, Meta(ge=1, le=100_000)]
NamePattern = Annotated[Name, Meta(min_length=1)]


class NewServer(Body):
    """
    ``download`` is the program with which the line downloads the install script; the token is valid for ``expires_in``
    seconds; ``proxy`` is the URL of the machine's HTTP proxy; ``relay`` is the name or id of the relay through which
    the agent reaches Stoker. With ``again``, the machine takes the place of an
    enrolled server; with ``rerun``, it runs everything again.
    """

    name: RequiredName
    download: Download = "python3"
    expires_in: Lifetime = _DAY
    proxy: Text | None = None
    relay: Name | None = None
    again: bool = False
    rerun: bool = False


_ServerLabels = Annotated[Any, described(dict[str, Annotated[str, Meta(max_length=63)]])]


class NewEnrollment(Body):
    """
    A token for up to ``limit`` machines within ``expires_in`` seconds, each of which becomes a server.

    ``names`` is a pattern such as ``web*``: stacks may use the names of servers that match it. With ``approval``, a
    server waits until a user approves it. ``proxy`` is the URL of the machines' HTTP proxy.
    ``relay`` is the name or id of the relay through which the agents reach Stoker.
    """

    limit: Limit
    expires_in: Lifetime = _DAY
    name_from: NameSource = NameSource.HOSTNAME
    names: NamePattern | None = None
    labels: _ServerLabels | None = None
    approval: bool = False
    download: Download = "python3"
    proxy: Text | None = None
    relay: Name | None = None


class ServerEnrollment(Answer):
    """A ``token``, and the ``command`` that installs the agent on a machine."""

    id: Id
    token: str
    expires_at: Time
    command: str
    url: Annotated[str, Meta(description="The URL where the agent reaches Stoker")]
    warning: Annotated[str | None, Meta(description="Why other machines cannot reach the URL")]


class ShownEnrollment(Answer):
    """``server_id`` is null if every machine becomes a new server. ``uses`` counts the machines."""

    id: Id
    status: Literal["ACTIVE", "EXPIRED", "USED"]
    server_id: str | None
    limit: Positive
    uses: Count
    name_from: NameSource
    names: str | None
    labels: dict[str, str]
    approval: bool
    rerun: bool
    created_at: Time
    created_by: str | None
    expires_at: Time


@operation(201, {"server": ShownServer, "enrollment": ServerEnrollment}, errors=(409,))
def create_server(request: RequestContext, tx: Tx, body: NewServer) -> dict[str, Any]:
    """Enroll a server. The response contains the command that installs the agent."""
    if body.rerun and not body.again:
        raise Invalid("rerun needs again: a new server has nothing to run again")
    server, issued, token = enrollment.enroll(
        tx,
        request.project,
        body.name,
        lifetime=timedelta(seconds=body.expires_in),
        created_by=request.user.user_name,
        again=body.again,
        reruns=body.rerun,
    )
    _describe(request, issued)
    return {"server": serialize(request, server), "enrollment": _with_token(tx, request, issued, token, body)}


@operation(201, {"enrollment": ServerEnrollment})
def create(request: RequestContext, tx: Tx, body: NewEnrollment) -> dict[str, Any]:
    """Create a token for many machines. The response contains the command that installs the agent."""
    issued, token = enrollment.enroll_many(
        tx,
        request.project,
        limit=body.limit,
        lifetime=timedelta(seconds=body.expires_in),
        created_by=request.user.user_name,
        name_from=body.name_from,
        names=body.names,
        labels=check_labels(body.labels or {}),
        needs_approval=body.approval,
    )
    _describe(request, issued)
    return {"enrollment": _with_token(tx, request, issued, token, body)}


@operation(200, {"enrollments": list[ShownEnrollment]})
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the project's enrollments, without their tokens. Expired ones are listed for 30 days."""
    return {"enrollments": [_serialize(issued, tx.now) for issued in servers.list_enrollments(tx, request.project)]}


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Revoke a token. Servers that were enrolled with it keep their keys."""
    issued = servers.get_enrollment(tx, request.path["enrollment"], request.project)
    servers.delete_enrollment(tx, issued.id)
    _describe(request, issued)


@operation(200, {"server": ShownServer}, errors=(409,))
def approve(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """
    Approve a server that waits for it: its agent starts at once.

    If the path contains the server's name, stacks may use a name that the machine chose, also if only the name waits.
    """
    server = find_locked(tx, request)
    approved = enrollment.approve(tx, server, request.path["server"])
    name = "" if approved.is_self_named == server.is_self_named else ", and stacks may use its name"
    audit_trail.describe_server(request, approved, f"Server {server.name} may run configs{name}")
    return {"server": serialize(request, approved)}


@operation(204, errors=(409,))
def reject(request: RequestContext, tx: Tx) -> None:
    """Delete a server that waits for enrollment. Its key becomes invalid."""
    server = find_locked(tx, request)
    enrollment.require_pending(server)
    server_runs.release_server(tx, request.app.work, server.id, server.name)
    enrollment.remove(tx, server)
    audit_trail.describe_server(request, server, f"Server {server.name} was deleted")


def _describe(request: RequestContext, issued: Enrollment) -> None:
    """Name the enrollment for the audit log."""
    scope = "one server" if issued.server_id else f"{issued.limit} servers"
    request.subject.server_id = issued.server_id
    request.subject.detail = f"{issued.id} for {scope}, until {issued.expires_at:%Y-%m-%dT%H:%M:%SZ}"


def _with_token(
    tx: Tx, request: RequestContext, issued: Enrollment, token: str, body: NewServer | NewEnrollment
) -> ServerEnrollment:
    bundle = request.app.servers.agent_bundle
    endpoint = bundle.site if body.relay is None else _endpoint(tx, request, body.relay)
    url = endpoint.url
    if body.proxy is not None and not _PROXY.fullmatch(body.proxy):
        raise Invalid(
            "proxy must be http://HOST:PORT; if the proxy needs a password, set https_proxy in the shell of the machine"
        )
    return fill(
        ServerEnrollment,
        issued,
        token=token,
        command=bundle.command(token, body.download, body.proxy, endpoint),
        url=url,
        warning=_LOOPBACK.format(url=url) if is_loopback_url(url) else None,
    )


def _endpoint(tx: Tx, request: RequestContext, named: str) -> Endpoint:
    """Return where agents reach the relay of this name or id. Raises EntityNotFound."""
    relay = servers.find_relay_by_name(tx, request.project, named) or servers.get_relay(tx, named, request.project)
    return Endpoint(relay.url, relay.ca)


def _serialize(issued: Enrollment, now: datetime) -> ShownEnrollment:
    status = "EXPIRED" if issued.expires_at <= now else "ACTIVE"
    if issued.uses >= issued.limit:
        status = "USED"
    return fill(ShownEnrollment, issued, status=status, approval=issued.needs_approval, rerun=issued.reruns)
