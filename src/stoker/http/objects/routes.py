"""Routes of the object store API, a subset of Swift's."""

from __future__ import annotations

from stoker.http import errors
from stoker.http.access import MEMBER, READER, Public
from stoker.http.objects import accounts, containers, info, object_copy, objects
from stoker.http.objects.access import OwnToken, TokenOrSignature
from stoker.http.request_context import Route
from stoker.settings import Settings

_ACCOUNT = errors.OBJECTS + "/v1/{account}"
_CONTAINER = _ACCOUNT + "/{container}"
_OBJECT = _CONTAINER + "/{object*}"
_READ, _WRITE = OwnToken(READER), OwnToken(MEMBER)
_READ_ONE, _WRITE_ONE = TokenOrSignature(READER), TokenOrSignature(MEMBER)


def _object_size(settings: Settings) -> int:
    return settings.max_object_size


ROUTES = [
    Route("GET", errors.OBJECTS + "/info", Public(), info.show),
    Route("HEAD", errors.OBJECTS + "/info", Public(), info.show),
    Route("HEAD", _ACCOUNT, _READ, accounts.head),
    Route("GET", _ACCOUNT, _READ, accounts.index),
    Route("POST", _ACCOUNT, _WRITE, accounts.post, 2 * 1024 * 1024),
    Route("PUT", _CONTAINER, _WRITE, containers.put),
    Route("POST", _CONTAINER, _WRITE, containers.post),
    Route("DELETE", _CONTAINER, _WRITE, containers.delete),
    Route("HEAD", _CONTAINER, _READ, containers.head),
    Route("GET", _CONTAINER, _READ, containers.index),
    Route("PUT", _OBJECT, _WRITE_ONE, objects.put, _object_size),
    Route("POST", _OBJECT, _WRITE_ONE, objects.post),
    Route("DELETE", _OBJECT, _WRITE_ONE, objects.delete),
    Route("HEAD", _OBJECT, _READ_ONE, objects.head),
    Route("GET", _OBJECT, _READ_ONE, objects.get),
    Route("COPY", _OBJECT, _WRITE_ONE, object_copy.out_of),
]
