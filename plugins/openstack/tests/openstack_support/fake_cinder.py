"""The Cinder of the OpenStack in memory (``fake_openstack``): volumes, their types and their attachments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from support.http_stub import Asked, Said


@dataclass
class FakeCinder:
    """Volumes change their state at each list call. ``refused_types``: retypes to these, which are private, fail."""

    volumes: dict[str, dict[str, Any]] = field(default_factory=dict)
    types: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": str(uuid4()), "name": name} for name in ("slow", "fast", "full")]
    )
    refused_types: tuple[str, ...] = ("full",)
    #: The bodies of the actions that were requested.
    actions: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, asked: Asked, path: str) -> Said:
        path = path.removeprefix("v3")
        if path == "/volumes" and asked.verb == "POST":
            return self._create(asked.json["volume"])
        if path == "/volumes/detail":
            return Said(200, {"volumes": [self._progress(volume) for volume in list(self.volumes.values())]})
        if path == "/types":
            is_whole = asked.query.get("is_public") == "None"  # Cinder's default for administrators: public types
            types = [item for item in self.types if is_whole or item["name"] not in self.refused_types]
            return Said(200, {"volume_types": types})
        if match := re.fullmatch("/types/([^/]+)", path):
            found = [item for item in self.types if item["id"] == match[1]]
            return Said(200, {"volume_type": found[0]}) if found else Said(404, {"itemNotFound": {"message": "-"}})
        match = re.fullmatch("/volumes/([^/]+)(/action)?", path)
        if match is None or match[1] not in self.volumes:
            return Said(404, {"itemNotFound": {"message": "-"}})
        volume = self.volumes[match[1]]
        if match[2]:
            return self._act(volume, asked.json)
        if asked.verb == "DELETE":
            volume["status"] = "deleting"
            return Said(202)
        return Said(200, {"volume": dict(volume)})

    def attach(self, id: str, server: str) -> dict[str, Any]:
        """Attach a volume, which is visible after the next list call; return Nova's representation."""
        self.volumes[id] |= {"status": "attaching", "next": ("in-use", [{"server_id": server}])}
        return {"id": id, "volumeId": id, "serverId": server, "device": "/dev/vdb"}

    def detach(self, id: str) -> None:
        """Detach a volume."""
        self.volumes[id] |= {"status": "detaching", "next": ("available", [])}

    def _create(self, wanted: dict[str, Any]) -> Said:
        id = str(uuid4())
        members = {"description": None, "metadata": {}, "volume_type": "slow", "attachments": [], **wanted}
        self.volumes[id] = {**members, "id": id, "status": "creating", "next": ("available", [])}
        return Said(202, {"volume": dict(self.volumes[id])})

    def _progress(self, volume: dict[str, Any]) -> dict[str, Any]:
        if volume["status"] == "deleting":
            del self.volumes[volume["id"]]
        if "next" in volume:
            volume["status"], volume["attachments"] = volume.pop("next")
        return dict(volume)

    def _act(self, volume: dict[str, Any], action: dict[str, Any]) -> Said:
        self.actions.append(action)
        wanted = action["os-retype"]["new_type"]
        name = next(item["name"] for item in self.types if wanted in item.values())
        if name not in self.refused_types:
            volume["volume_type"] = name
        volume |= {"next": (volume["status"], volume["attachments"]), "status": "retyping"}
        return Said(202)
