"""Collections: the objects of one kind, with the calls that all kinds have alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from stoker_client.errors import BadAnswer, BadInput
from stoker_client.references import choose, is_id

if TYPE_CHECKING:
    from stoker_client.wire import Wire

Object = TypeVar("Object", bound=Mapping[str, Any])
Anything = dict[str, Any]


class Collection(Generic[Object]):
    """The objects below one path of the API. ``ref`` is a name, an id or a unique prefix of an id."""

    def __init__(
        self,
        wire: Wire,
        path: str,
        noun: str,
        *,
        key: str = "",
        plural: str = "",
        wraps_body: bool = False,
        has_pages: bool = False,
    ) -> None:
        """
        ``noun`` names the kind in errors. ``key`` and ``plural`` are the members of answers that have one object and
        the list, by default the noun. With ``wraps_body``, requests have the object under ``key``, too. With
        ``has_pages``, the service divides the list into pages.
        """
        self._wire = wire
        self._path = path
        self._noun = noun
        self._key = key or noun
        self._plural = plural or f"{self._key}s"
        self._wraps_body = wraps_body
        self._has_pages = has_pages

    def all(self, *, limit: int | None = None, **query: Any) -> list[Object]:
        """
        Return the objects, in the order of the service, or the first ``limit`` ones. ``query``: filters of the API.
        """
        if self._has_pages:
            return read_pages(self._wire, self._path, self._plural, query, limit)
        return part(self._wire.get(self._path, query), self._plural)[:limit]

    def find_id(self, ref: str) -> str:
        """Return the id of an object. Raises NotFound or Ambiguous."""
        return ref if is_id(ref) else str(choose(self.all(), ref, self._noun)["id"])

    def show(self, ref: str) -> Object:
        """Return one object. Raises NotFound or Ambiguous."""
        return self._one(self._wire.get(self._path_of(ref)))

    def create(self, body: Mapping[str, Any]) -> Object:
        """Create an object. The answer may contain a secret that no other answer contains."""
        return self._send("POST", self._path, body)

    def change(self, ref: str, changes: Mapping[str, Any]) -> Object:
        """Change some attributes of an object."""
        return self._send("PATCH", self._path_of(ref), changes)

    def delete(self, ref: str) -> None:
        """Delete an object."""
        self._wire.send("DELETE", self._path_of(ref))

    def _path_of(self, ref: str) -> str:
        return f"{self._path}/{segment(self.find_id(ref))}"

    def _send(self, method: str, path: str, body: Mapping[str, Any]) -> Object:
        return self._one(self._wire.send(method, path, {self._key: body} if self._wraps_body else body))

    def _one(self, answer: Any) -> Object:
        return part(answer, self._key)


class Versions(Collection[Anything]):
    """Objects whose versions never change. ``ref`` is ``NAME/VERSION``, also as ``catalog://NAME/VERSION``."""

    def find_id(self, ref: str) -> str:
        """Return the reference without a scheme. Raises BadInput if it is no name and version."""
        name, _, version = ref.rpartition("://")[2].partition("/")
        if not name or not version.isdecimal() or int(version) < 1:
            raise BadInput(f"{ref!r} is not a name and a version, such as nginx/1")
        return f"{name}/{int(version)}"

    def _path_of(self, ref: str) -> str:
        name, _, version = self.find_id(ref).partition("/")
        return f"{self._path}/{segment(name)}/{version}"


PAGE = 200


def read_pages(
    wire: Wire, path: str, key: str, query: Mapping[str, Any], limit: int | None = None, *, id_key: str = "id"
) -> list[Any]:
    """Return the first ``limit`` entries of the list under ``key``, or all. ``id_key`` is the key of their ids."""
    size = PAGE if limit is None else min(limit, PAGE)
    return list(islice(iterate_pages(wire, path, key, query, size, id_key=id_key), limit))


def iterate_pages(
    wire: Wire, path: str, key: str, query: Mapping[str, Any], size: int, *, id_key: str = "id"
) -> Iterator[Any]:
    """Yield all entries of the list under ``key``, which is read in pages of ``size`` entries."""
    marker = None
    while True:
        page = part(wire.get(path, {**query, "limit": size, "marker": marker}), key)
        yield from page
        if len(page) < size:
            return
        marker = page[-1][id_key]


def segment(text: str) -> str:
    """Return ``text`` quoted as one segment of a path. Raises BadInput if it cannot be a segment."""
    if not text:
        raise BadInput("a name or id is missing: it is empty")
    if text in (".", ".."):
        raise BadInput(f"{text!r} is neither a name nor an id")
    return quote(text, safe="")


def part(answer: Any, key: str) -> Any:
    """Return the value under ``key``. Raises BadAnswer without it, because every valid answer has the key."""
    if not isinstance(answer, dict) or key not in answer:
        raise BadAnswer(f"the service's answer has no {key!r}: is it an orchestration service?")
    return answer[key]
