"""/relay/v1/results: the results of runs of many agents in one request."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from stoker.http import errors
from stoker.http.agent import runs
from stoker.http.contracts import operation
from stoker.http.fields import Absent, Answer, Body, Id
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import StokerError
from stoker.servers.keys import KeyRequest

#: Results in one request.
MOST_RESULTS = 200
BODY_BYTES = 4 * 1024 * 1024


class RelayedResult(Body):
    """The result of one run, as /agent/v1/runs/{config_id}/signal takes it, with the agent's key."""

    key: Annotated[str, Meta(min_length=1, max_length=255)]
    config_id: Id
    values: dict[str, Any]


class RelayedResults(Body):
    results: Annotated[list[RelayedResult], Meta(max_length=MOST_RESULTS)]


class ResultAnswer(Answer):
    """The answer to one result, in the order of the request, as /agent/v1/runs/{config_id}/signal gives it."""

    status: int
    body: dict[str, Any]
    retry_after: str | Absent = UNSET


class ResultAnswers(Answer):
    results: list[ResultAnswer]


@operation(200, ResultAnswers)
async def post(request: RequestContext, body: RelayedResults) -> Response:
    """Apply the results together with those of other agents."""
    answers = await asyncio.gather(*(_apply(request, result) for result in body.results))
    return Response(200, msgspec.json.encode({"results": answers}))


async def _apply(request: RequestContext, result: RelayedResult) -> ResultAnswer:
    try:
        server_id = request.app.servers.keys.get_cached(result.key)
        if server_id is None:
            server_id = await request.app.agent_batches.keys.submit(KeyRequest(result.key, f"relay {request.relay}"))
        status = await runs.apply_result(request, server_id, result.config_id, result.values)
    except StokerError as error:
        answer = errors.of(request.raw.scope["path"], error, request.app.settings.identity_url)
        return ResultAnswer(answer.status, answer.content, answer.headers.get("Retry-After", UNSET))
    return ResultAnswer(200, {"status": status})
