"""/object-store/info: the supported features of Swift, and the limits of requests."""

from __future__ import annotations

from typing import Any

from stoker.http.contracts import operation
from stoker.http.objects import bulk
from stoker.http.request_context import RequestContext, Response
from stoker.objects import limits, tempurl


@operation(200, dict[str, Any])
def show(request: RequestContext) -> Response:
    """Return the supported features of Swift, and the limits of requests."""
    settings = request.app.settings
    digests = ["sha256", "sha512"]
    return Response(
        200,
        {
            "swift": {
                "version": "2.38.0",
                "max_file_size": settings.max_object_size,
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
                "strict_cors_mode": True,
                "policies": [{"name": "Policy-0", "aliases": "Policy-0", "default": True}],
            },
            "tempurl": {
                "methods": list(tempurl.METHODS),
                "allowed_digests": [*(["sha1"] if settings.tempurl_sha1 else []), *digests],
                "incoming_allow_headers": [],
                "incoming_remove_headers": ["x-timestamp", "x-open-expired"],
                "outgoing_allow_headers": ["x-object-meta-public-*"],
                "outgoing_remove_headers": ["x-object-meta-*"],
            },
            # openstacksdk reads this before it sends an object. Stoker does not support objects that consist of
            # segments.
            "slo": {"min_segment_size": 1, "max_manifest_segments": 0, "max_manifest_size": 0},
            "bulk_delete": {"max_deletes_per_request": bulk.MOST, "max_failed_deletes": bulk.MOST},
            "versioned_writes": {"allowed_flags": ["x-versions-location", "x-history-location"]},
            "object_versioning": {},
        },
    )
