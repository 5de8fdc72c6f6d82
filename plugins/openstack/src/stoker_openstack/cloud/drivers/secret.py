"""Secrets of Barbican, which cannot be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import KEY_MANAGER
from stoker_openstack.cloud.drivers.base import Done, Driver, Result, Run, members_of
from stoker_openstack.cloud.errors import CloudFailure
from stoker_openstack.cloud.nouns import Noun
from stoker_openstack.model import CloudKind


class SecretDriver(Driver):
    """
    The driver of secrets. The external id is the ``secret_ref``, as in Heat.

    Barbican has neither unique names nor metadata at the creation. Therefore a secret whose request was interrupted is
    recognized by its name and time.
    """

    kind, noun = CloudKind.SECRET, Noun("Secret", KEY_MANAGER)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        secret = run.client.find(KEY_MANAGER, _path(run.external_id), "")
        return {**secret, "secret_ref": run.external_id} if secret else None

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        name, sent_at = run.name, str(run.progress["sent_at"])[:19]
        secrets = run.client.get(KEY_MANAGER, "/secrets", query={"name": name, "created": f"gte:{sent_at}"})["secrets"]
        return {**secrets[0], "id": secrets[0]["secret_ref"]} if secrets else None

    def create(self, run: Run) -> Result:
        body = {**members_of(run.specification), "name": run.name}
        created = run.client.request(KEY_MANAGER, "POST", "/secrets", body).json()
        run.record_created(created["secret_ref"], created)
        return self.update(run, created)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        secret = self.read(run)
        if secret is not None and secret.get("status") == "ERROR":
            reason = secret.get("error_reason") or "Unknown"
            raise CloudFailure(f'Went to status ERROR due to "{reason}"', "ResourceInError", observed=secret)
        return Done(secret)

    def delete(self, run: Run) -> Result:
        run.client.request(KEY_MANAGER, "DELETE", _path(run.external_id))
        return Done(is_gone=True)


def _path(secret_ref: str) -> str:
    return f"/secrets/{secret_ref.rstrip('/').rpartition('/')[2]}"
