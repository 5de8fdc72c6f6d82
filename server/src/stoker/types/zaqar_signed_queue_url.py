"""OS::Zaqar::SignedQueueURL: a signed URL that permits the use of a queue without a login."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from stoker.model.stack import Resource
from stoker.resources.base import Context, NoSuchAttribute, Outcome, Properties, ResourceType, physical_name
from stoker.resources.properties import Property
from stoker.types.zaqar_queue import messaging_of

_METHODS = ("GET", "DELETE", "PATCH", "POST", "PUT")
_PATHS = ["messages"]
_ATTRIBUTES = {
    "signature": "What proves the leave.",
    "expires": "When it ends.",
    "paths": "What it opens.",
    "methods": "To what.",
    "project": "Whose queue it is.",
    "query_str": "All of it, as a query.",
}


class ZaqarSignedQueueUrl(ResourceType):
    name = "OS::Zaqar::SignedQueueURL"
    description = "A pre-signed URL of a queue."
    properties = {
        "queue": Property(kind="string", required=True, description="Name of the queue."),
        "paths": Property(kind="list", each=Property(kind="string"), description="What of the queue it opens."),
        "ttl": Property(kind="integer", minimum=1, maximum=3_153_600_000, description="Seconds that it lasts."),
        "methods": Property(kind="list", each=Property(kind="string", allowed=_METHODS), description="To what."),
    }
    attributes = _ATTRIBUTES

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        queue = properties["queue"]
        signed_url = messaging_of(context).sign(
            context.project_id,
            queue,
            properties["paths"] or _PATHS,
            properties["methods"] or ["GET"],
            context.tx.now + timedelta(seconds=properties["ttl"] or 86400),
        )
        return Outcome(physical_id=physical_name(context, resource), data={**signed_url, "queue_name": queue})

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name not in _ATTRIBUTES:
            raise NoSuchAttribute(name)
        signed_url = resource.data
        if name != "query_str":
            return signed_url.get(name)
        return urlencode(
            {
                "signature": signed_url.get("signature"),
                "expires": signed_url.get("expires"),
                "paths": ",".join(signed_url.get("paths", ())),
                "methods": ",".join(signed_url.get("methods", ())),
                "project_id": signed_url.get("project"),
                "queue_name": signed_url.get("queue_name"),
            }
        )
