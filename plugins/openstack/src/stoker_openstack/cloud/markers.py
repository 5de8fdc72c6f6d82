"""
Markers: how Stoker recognizes its own objects at a cloud.

An object carries the ids of the site and of the resource from the moment of its creation. Thereby a job that was killed
after it had sent a request finds the object, and ``stoker db sweep`` finds objects whose row is gone. Servers, volumes
and images have two keys of their metadata. Neutron's objects have a description, because tags need a second request; an
object whose description the user sets gets a tag afterwards.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker_openstack.model import RESOURCE_KEY, SITE_KEY

_PREFIX = "stoker"


def site_id(secret: bytes) -> str:
    """Return the public id of a site. ``secret`` is the site secret."""
    return hmac.new(secret, b"stoker cloud marker", hashlib.sha256).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Marker:
    """The marker of one object."""

    site: str
    resource_id: str

    @property
    def metadata(self) -> dict[str, str]:
        """The keys for the metadata of a server, volume or image."""
        return {SITE_KEY: self.site, RESOURCE_KEY: self.resource_id}

    @property
    def text(self) -> str:
        """The tag or description of an object of Neutron; also a part of the names of auxiliary objects."""
        return f"{_PREFIX}:{self.site}:{self.resource_id}"


def marker_of(item: Mapping[str, Any]) -> Marker | None:
    """Return the marker in a service's representation of an object; None if Stoker did not create it."""
    for place in (item.get("metadata"), item):  # Glance has its properties beside its own members
        if isinstance(place, Mapping) and SITE_KEY in place and RESOURCE_KEY in place:
            return Marker(str(place[SITE_KEY]), str(place[RESOURCE_KEY]))
    for text in (item.get("description"), *(item.get("tags") or ())):
        parts = str(text).split(":") if text else []
        if len(parts) == 3 and parts[0] == _PREFIX:
            return Marker(parts[1], parts[2])
    return None
