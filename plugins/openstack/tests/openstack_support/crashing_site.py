"""A process that creates or deletes 50 servers: ``crashing_site FOLDER DATABASE create|delete``. Tests kill it."""

from __future__ import annotations

import sys
from pathlib import Path

from openstack_support.cloud_sites import CloudSite
from stoker.store.open import Store
from stoker_openstack.model import CloudAction, CloudKind
from support import databases

COUNT = 50
_SERVER = {"imageRef": "tiny", "flavorRef": "m1.tiny", "networks": [{"uuid": "private"}]}


def main(folder: Path, url: str, action: str) -> None:
    """Continue with the action where a killed process ended."""
    stack_file = folder / "stack"
    stack_id = stack_file.read_text() if stack_file.exists() else ""
    store = Store(url, keys=databases.keys)
    site = CloudSite(store, folder, "peer", stack_id)
    stack_file.write_text(site.stack_id)
    for n in range(COUNT):
        id, row = f"crash-{n}", site.find(f"crash-{n}")
        specification = {**_SERVER, "name": f"t-crash-{n}"}
        if action == "create" and row is None:
            site.request(CloudKind.SERVER, specification, id=id)
        elif action == "delete" and row is not None and row.action is not CloudAction.DELETE:
            site.request(CloudKind.SERVER, specification, CloudAction.DELETE, id)
    for n in range(COUNT):
        if action == "create":
            site.complete(f"crash-{n}")
        else:
            assert site.end(f"crash-{n}", 300) is None
    site.work.stop()
    store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
