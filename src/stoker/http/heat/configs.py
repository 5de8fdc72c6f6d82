"""/v1/{project}/software_configs"""

from __future__ import annotations

from typing import Any

from stoker.deployments import service
from stoker.deployments.derive import redact_config
from stoker.http import paged_list, params
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import Forbidden, RequestLimitExceeded
from stoker.store import configs, rows
from stoker.store.tx import Tx


def index(request: RequestContext) -> Response:
    """List the project's configs, newest first; with ``derived=false`` without derived configs."""
    if params.flag(request.query.get("global_tenant"), "global_tenant"):
        raise Forbidden("You are not authorized to complete this action.")
    limit = params.whole(request.query.get("limit"), "limit")
    with_derived = params.flag(request.query.get("derived"), "derived") is not False
    store, marker, start = request.app.store, request.query.get("marker"), None
    if marker:  # an unknown marker is ignored, as in Heat
        with store.read() as tx:
            start = configs.position(tx, marker, request.project)

    def read(before: int | None, most: int) -> list[tuple[int, Any]]:
        with store.read() as tx:
            return list(configs.page(tx, request.project, before=before, limit=most, with_derived=with_derived))

    return paged_list.reply(request, "software_configs", read, start=start, limit=limit, first=1000)


def create(request: RequestContext) -> Response:
    """Create a config. Raises Invalid, or RequestLimitExceeded if the project has its maximum of configs."""
    body = params.body(request)
    limit = request.app.settings.max_software_configs

    def do(tx: Tx) -> str:
        if 0 <= limit <= configs.count(tx, request.project):
            raise RequestLimitExceeded(f"this project may have {limit} software configs and has them: delete some")
        _, rendered = service.new_config(
            tx,
            request.project,
            name=body.get("name"),
            group=body.get("group"),
            config=body.get("config"),
            inputs=body.get("inputs"),
            outputs=body.get("outputs"),
            options=body.get("options"),
        )
        return rendered

    return _serialize(request.app.store.write(do))


def show(request: RequestContext) -> Response:
    """Return a config with its secrets redacted."""
    with request.app.store.read() as tx:
        found = configs.body(tx, request.path["config_id"], request.project)
        return _serialize(rows.dump(redact_config(tx, rows.load(found))))


def delete(request: RequestContext) -> Response:
    """Delete a config. Raises EntityNotFound, or ResourceInUse if a deployment or a schedule uses the config."""
    request.app.store.write(lambda tx: service.delete_config(tx, request.path["config_id"], request.project))
    return Response(204)


def _serialize(rendered: str) -> Response:
    return Response(200, f'{{"software_config":{rendered}}}'.encode())
