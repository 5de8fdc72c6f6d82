"""Routes of the object store API, a subset of Swift's."""

from __future__ import annotations

from starlette.responses import Response

from stoker.http.access import MEMBER, PUBLIC, READER
from stoker.http.api import Api, Route
from stoker.http.objects import containers, info, objects
from stoker.http.objects.access import MOUNTED_AT, account_access, object_access
from stoker.http.objects.errors import render
from stoker.objects import limits

_ACCOUNT = MOUNTED_AT + "/v1/{account}"
_CONTAINER = _ACCOUNT + "/{container}"
_OBJECT = _CONTAINER + "/{object*}"
_READ, _WRITE = account_access(READER), account_access(MEMBER)
_READ_ONE, _WRITE_ONE = object_access(READER), object_access(MEMBER)


ROUTES = [
    Route("GET", MOUNTED_AT + "/info", PUBLIC, info.show),
    Route("HEAD", MOUNTED_AT + "/info", PUBLIC, info.show),
    Route("HEAD", _ACCOUNT, _READ, containers.head_account),
    Route("GET", _ACCOUNT, _READ, containers.list_account),
    Route("POST", _ACCOUNT, _WRITE, containers.post_account),
    Route("PUT", _CONTAINER, _WRITE, containers.put),
    Route("POST", _CONTAINER, _WRITE, containers.post),
    Route("DELETE", _CONTAINER, _WRITE, containers.delete),
    Route("HEAD", _CONTAINER, _READ, containers.head),
    Route("GET", _CONTAINER, _READ, containers.index),
    Route("PUT", _OBJECT, _WRITE_ONE, objects.put, limits.OBJECT),
    Route("POST", _OBJECT, _WRITE_ONE, objects.post),
    Route("DELETE", _OBJECT, _WRITE_ONE, objects.delete),
    Route("HEAD", _OBJECT, _READ_ONE, objects.head),
    Route("GET", _OBJECT, _READ_ONE, objects.get),
]


def _decorate(response: Response, request_id: str) -> None:
    response.headers["x-trans-id"] = f"tx{request_id.removeprefix('req-')}"


API = Api("object-store", ROUTES, render, has_documents=True, decorate=_decorate)
