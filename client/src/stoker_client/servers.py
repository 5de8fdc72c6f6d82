"""The servers API, a Stoker extension."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from stoker_client.collection import Anything, Collection, is_pattern, part
from stoker_client.errors import NotFound
from stoker_client.shapes import Server
from stoker_client.stacks import Stacks

if TYPE_CHECKING:
    from stoker_client.wire import Wire

#: References in one request: their names are part of its URL.
_REFS = 50


class Servers(Collection[Server]):
    """
    The servers of the project, oldest first. ``ref`` is a name, an id, a prefix of an id, or ``STACK/RESOURCE``.

    Filters: ``selector``, ``status``, ``name`` (names or patterns). A change of ``labels`` removes those with the value
    None; the ``policy`` None restores that of the site.
    """

    page_size = 1000

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/servers", "server", finds_names=True, has_pages=True)

    def _search(self, ref: str) -> str:
        return str(Stacks(self.wire).resource(ref)["physical_resource_id"]) if "/" in ref else super()._search(ref)

    def _needs_list(self, ref: str) -> bool:
        return "/" in ref or super()._needs_list(ref)

    def find(self, refs: Sequence[str]) -> list[Server]:
        """
        Return the servers of several references, each server once.

        A pattern such as ``web*`` stands for all servers whose names match. Raises NotFound, and Ambiguous.
        """
        servers: dict[str, Server] = {}
        for start in range(0, len(refs), _REFS):
            some = refs[start : start + _REFS]
            listed = self._list_named(some)
            for ref in some:
                if is_pattern(ref):
                    matching = [server for server in listed if fnmatchcase(server["name"], ref)]
                    if not matching:
                        raise NotFound(f"no server's name matches {ref!r}; `stoker server list` lists them", 404)
                else:
                    same = [server for server in listed if ref in (server["id"], server["name"])]
                    matching = same if len(same) == 1 else [self.show(ref)]
                servers.update({server["id"]: server for server in matching})
        return list(servers.values())

    def _list_named(self, refs: Sequence[str]) -> list[Server]:
        """Return the servers with these names, patterns or ids; none for a single one, which ``show`` finds."""
        if len(refs) == 1 and not is_pattern(refs[0]):
            return []
        names = [ref for ref in refs if "/" not in ref]
        return self.all(name=names) if names else []

    def counts(self, **query: Any) -> dict[str, Any]:
        """Return the number of servers that a query selects: ``total``, ``outdated``, and those ``by_status``."""
        return part(self.wire.get("/server_counts", query), "server_counts")

    def facts(self) -> list[dict[str, Any]]:
        """Return the names that selectors can use, each with the number of servers, and its frequent ``values``."""
        return part(self.wire.get("/server_facts"), "server_facts")

    def enroll(self, name: str, **options: Any) -> Anything:
        """
        Create an enrollment, and return the ``server`` and the ``enrollment`` with the command to run on the server.

        ``options`` are those of the API: ``download``, ``proxy``, ``expires_in`` (seconds), ``again`` and
        ``rerun``.
        """
        answer = self.wire.send("POST", "/servers", {"name": name, **options})
        part(part(answer, "enrollment"), "command")
        return answer

    def approve(self, ref: str) -> Server:
        """Approve a server that waits for it."""
        return self._one(self._act(ref, "approve"))

    def reject(self, ref: str) -> None:
        """Delete a server that waits for approval."""
        self._act(ref, "reject")


_PLAIN = re.compile(r"[^\s()]+")


def join_selectors(selectors: Sequence[str]) -> str | None:
    """Return the selector of the servers that every one of ``selectors`` selects, or None without selectors."""
    parts = [text if len(selectors) == 1 or _PLAIN.fullmatch(text) else f"({text})" for text in selectors]
    return " and ".join(parts) or None
