"""/agent/v1/document: what this server has to run. Held open until that changes."""

from __future__ import annotations

import time

from stoker.deployments.documents import Document
from stoker.deployments.runs import OWN_CHANNEL
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.store.bell import server_topic

_LONGEST_WAIT = 60


async def poll(call: Call) -> Reply:
    wait = min(reading.whole(call.query.get("wait"), "wait") or 0, _LONGEST_WAIT)
    known = call.request.headers.get("if-none-match")
    await _seen(call)
    until = time.monotonic() + wait
    while True:
        with call.services.waiters.register(server_topic(call.server)) as waiter:
            document = await _current(call)
            etag = f'"{document.revision}"'
            if etag != known:
                call.services.documents.went_out(document, OWN_CHANNEL)
                return Reply(200, document.body, {"ETag": etag})
            left = until - time.monotonic()
            if left <= 0 or call.services.waiters.closed:
                return Reply(304, headers={"ETag": etag})
            await waiter.wait(left)


async def _current(call: Call) -> Document:
    documents = call.services.documents
    found = documents.agent(call.server)
    return found if found is not None else await call.in_thread(documents.load_agent, call.server)


async def _seen(call: Call) -> None:
    presence = call.services.servers.presence
    said = call.request.headers.get("x-stoker-agent", "")
    if presence.due(call.server, said):
        await call.in_thread(presence.write, call.server, said)
