"""/object-store/info: the supported features of Swift, and the limits of requests."""

from __future__ import annotations

from typing import Any

from stoker.http.contracts import operation
from stoker.http.request import RequestContext
from stoker.objects import limits, tempurl


@operation(200)
def show(_: RequestContext) -> dict[str, Any]:
    """Return the supported features of Swift, and the limits of requests."""
    return {
        "swift": {
            "version": "2.38.0",
            "max_file_size": limits.OBJECT,
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
