"""Key pairs of Nova, which belong to a user and have no marker: their names are their ids."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from stoker_openstack.cloud.client import COMPUTE
from stoker_openstack.cloud.drivers.base import SENT_AT, Done, Driver, Result, Run, body_of
from stoker_openstack.cloud.nouns import NOUNS
from stoker_openstack.model import CloudKind

#: Nova's clock may be slow by this time.
_CLOCK_DIFFERENCE = timedelta(seconds=5)


class KeypairDriver(Driver):
    """The driver of key pairs."""

    kind, noun = CloudKind.KEYPAIR, NOUNS["keypair"]

    def read(self, run: Run) -> Mapping[str, Any] | None:
        match = super().read(run)
        # Only the answer to the create request has the private key.
        return {**run.object.observed, **match} if match else None

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        """
        Return the key pair of an interrupted request.

        A generated one is deleted, because its private key was lost, unless it is older than the request.
        """
        match = self.noun.find(run.client, run.name)
        public_key = run.specification.get("public_key")
        if match is None or public_key:
            is_same_key = match is not None and match["public_key"].strip() == str(public_key).strip()
            return {**match, "id": match["name"]} if match and is_same_key else None
        created_at = datetime.fromisoformat(match["created_at"]).replace(tzinfo=UTC)
        if created_at > datetime.fromisoformat(run.progress[SENT_AT]) - _CLOCK_DIFFERENCE:
            self.noun.delete(run.client, run.name)
        return None

    def create(self, run: Run) -> Result:
        body = {**body_of(run.specification), "name": run.name}
        answer = run.client.request(COMPUTE, "POST", "/os-keypairs", {"keypair": body})
        created = answer.json()["keypair"]
        run.record_created(created["name"], created)
        return Done(created)
