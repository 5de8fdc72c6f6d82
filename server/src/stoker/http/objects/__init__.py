"""The object store API, compatible with Swift's, of which it is a subset: its routes."""

from __future__ import annotations

from typing import Any

from stoker.http.access import MEMBER, PUBLIC, READER
from stoker.http.api import Api, Route
from stoker.http.contracts import operation
from stoker.http.objects import containers, objects
from stoker.http.objects.access import MOUNTED_AT, account_access, object_access
from stoker.http.objects.headers import render
from stoker.http.request import RequestContext
from stoker.objects import limits, tempurl

_ACCOUNT = MOUNTED_AT + "/v1/{account}"
_CONTAINER = _ACCOUNT + "/{container}"
_OBJECT = _CONTAINER + "/{object*}"
_READ, _WRITE = account_access(READER), account_access(MEMBER)
_READ_ONE, _WRITE_ONE = object_access(READER), object_access(MEMBER)


@operation(200)
def show_info(_: RequestContext) -> dict[str, Any]:
    """Return the supported features of Swift, and the limits of requests."""
    return {
        "swift": {
            "version": "2.38.0",
            "max_file_size": limits.OBJECT_SIZE,
            "max_meta_name_length": limits.META_NAME,
            "max_meta_value_length": limits.META_VALUE,
            "max_meta_count": limits.META_COUNT,
            "max_meta_overall_size": limits.META_OVERALL,
            "max_object_name_length": limits.OBJECT_NAME,
            "max_container_name_length": limits.CONTAINER_NAME,
            "account_listing_limit": limits.LISTING,
            "container_listing_limit": limits.LISTING,
            "account_autocreate": True,
            "allow_account_management": False,
            "policies": [{"name": "Policy-0", "aliases": "Policy-0", "default": True}],
        },
        "tempurl": {
            "methods": list(tempurl.METHODS),
            "allowed_digests": list(tempurl.DIGESTS),
            "incoming_allow_headers": [],
            "incoming_remove_headers": ["x-timestamp", "x-open-expired"],
            "outgoing_allow_headers": ["x-object-meta-public-*"],
            "outgoing_remove_headers": ["x-object-meta-*"],
        },
        # openstacksdk fails without this member before it sends an object. Objects have no segments.
        "slo": {"min_segment_size": 1, "max_manifest_segments": 0, "max_manifest_size": 0},
    }


ROUTES = [
    Route("GET", MOUNTED_AT + "/info", PUBLIC, show_info),
    Route("HEAD", MOUNTED_AT + "/info", PUBLIC, show_info),
    Route("HEAD", _ACCOUNT, _READ, containers.head_account),
    Route("GET", _ACCOUNT, _READ, containers.list_account),
    Route("POST", _ACCOUNT, _WRITE, containers.post_account),
    Route("PUT", _CONTAINER, _WRITE, containers.put),
    Route("POST", _CONTAINER, _WRITE, containers.post),
    Route("DELETE", _CONTAINER, _WRITE, containers.delete),
    Route("HEAD", _CONTAINER, _READ, containers.head),
    Route("GET", _CONTAINER, _READ, containers.index),
    Route("PUT", _OBJECT, _WRITE_ONE, objects.put, limits.OBJECT_SIZE),
    Route("POST", _OBJECT, _WRITE_ONE, objects.post),
    Route("DELETE", _OBJECT, _WRITE_ONE, objects.delete),
    Route("HEAD", _OBJECT, _READ_ONE, objects.head),
    Route("GET", _OBJECT, _READ_ONE, objects.get),
]


API = Api("object-store", ROUTES, render, has_documents=True)
