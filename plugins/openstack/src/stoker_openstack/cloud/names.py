"""Resolves names of a cloud's objects to ids, as Heat does for properties and custom constraints."""

from __future__ import annotations

import re
import time
from typing import Any

from stoker.bounded_dict import BoundedDict
from stoker_openstack.cloud.client import CloudClient
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.cloud.nouns import NOUNS, Noun

_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
#: Seconds that a resolved name is remembered.
_REMEMBERED = 60.0
#: Limit of the names that are remembered.
_MOST = 10_000


def not_found(title: str, name: str) -> CloudFailure:
    """Return Heat's error for a name or id without an object."""
    return CloudFailure(f"The {title} ({name}) could not be found.", "EntityNotFound")


class NameResolver:
    """Resolves names with one client. Found ids are remembered for a minute; missing names are not."""

    def __init__(self, client: CloudClient) -> None:
        self._client = client
        #: Kind and name of an object → its id, and the end of the entry on the monotonic clock.
        self._known: BoundedDict[tuple[str, str], tuple[str, float]] = BoundedDict(_MOST)

    def resolve(self, kind: str, name: str) -> str:
        """
        Return the id of the object of this kind (a key of NOUNS) with this name or id.

        Raises CloudFailure with Heat's text if there is no object or more than one.
        """
        id, until = self._known.get((kind, name), ("", 0.0))
        if until <= time.monotonic():
            id = self._look_up(NOUNS[kind], name)
            self._known.put((kind, name), (id, time.monotonic() + _REMEMBERED))
        return id

    def require_keypair(self, name: str) -> str:
        """Return the name of a key pair. Raises CloudFailure if there is no such key pair."""
        if NOUNS["keypair"].find(self._client, name) is None:
            raise not_found("Key", name)
        return name

    def _look_up(self, noun: Noun, name: str) -> str:
        if noun.has_plain_ids or _UUID.fullmatch(name):
            match = self._get(noun, name)
            if match is not None:
                return str(match["id"])
        query: list[tuple[str, Any]] = [] if noun.lists_all else [(noun.name_key, name)]
        if noun.key == "servers":
            query = [("name", f"^{re.escape(name)}$")]
        matches = [item for item in noun.list(self._client, query) if name in (item.get(noun.name_key), item.get("id"))]
        if not matches:
            raise not_found(noun.title, name)
        if len(matches) > 1:
            raise CloudFailure(
                f"Multiple physical resources were found with name ({name}).", "PhysicalResourceNameAmbiguity"
            )
        return str(matches[0]["id"])

    def _get(self, noun: Noun, id: str) -> dict[str, Any] | None:
        try:
            return noun.find(self._client, id)
        except CloudRefused as error:
            if error.status == 400:  # the id has another form
                return None
            raise
