"""Containers of Swift, whose names are their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from stoker_openstack.cloud.client import OBJECT_STORE, suppressing
from stoker_openstack.cloud.drivers.base import Done, Driver, Result, Run, texts_of
from stoker_openstack.cloud.nouns import Noun
from stoker_openstack.model import CloudKind

_MARKER = "x-container-meta-stoker"


class ContainerDriver(Driver):
    """The driver of containers."""

    kind, noun = CloudKind.CONTAINER, Noun("Container", OBJECT_STORE)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        return _head(run, run.external_id)

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        headers = _head(run, run.name)
        return {**headers, "id": run.name} if headers and headers.get(_MARKER) == run.marker.text else None

    def create(self, run: Run) -> Result:
        _put(run, run.name)
        created = _head(run, run.name) or {}
        run.record_created(run.name, created)
        return Done(created)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        _put(run, run.external_id)
        return Done(_head(run, run.external_id))

    def delete(self, run: Run) -> Result:
        path = _path(run.external_id)
        if run.specification.get("stoker:purge_on_delete"):
            for entry in run.client.get(OBJECT_STORE, f"{path}?format=json"):
                run.client.discard(OBJECT_STORE, f"{path}/{quote(str(entry['name']))}")
        run.client.request(OBJECT_STORE, "DELETE", path)
        return Done(is_gone=True)


def _path(name: str) -> str:
    return f"/{quote(name, safe='')}"


def _put(run: Run, name: str) -> None:
    """Create the container or change its headers."""
    headers = {**texts_of(run.specification.get("headers")), _MARKER: run.marker.text}
    run.client.request(OBJECT_STORE, "PUT", _path(name), headers=headers)
    if account := texts_of(run.specification.get("stoker:account_headers")):
        run.client.request(OBJECT_STORE, "POST", "", headers=account)


def _head(run: Run, name: str) -> dict[str, Any] | None:
    with suppressing(404):
        answer = run.client.request(OBJECT_STORE, "HEAD", _path(name))
        return {**{key.lower(): value for key, value in answer.headers.items()}, "stoker:url": answer.url}
    return None
