"""Collections: the objects of one kind, with the calls that all kinds have alike, and the references to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar
from urllib.parse import quote

from stoker_client.errors import Ambiguous, BadAnswer, BadInput, NotFound
from stoker_client.updates import Event, follow

if TYPE_CHECKING:
    from stoker_client.wire import Wire

Object = TypeVar("Object", bound=Mapping[str, Any])
Answer = TypeVar("Answer")
Anything = dict[str, Any]


@dataclass(eq=False)
class ReadOnlyCollection(Generic[Object]):
    """The objects below one path of the API. ``ref`` is a name, an id or a unique prefix of an id."""

    #: The most objects in one page of the list.
    page_size: ClassVar[int] = 200

    wire: Wire
    path: str
    #: The name of the kind in errors.
    noun: str
    _: KW_ONLY
    #: The members of answers that have one object and the list; by default, the noun.
    key: str = ""
    plural: str = ""
    #: The member with an object's id.
    id_key: str = "id"
    #: Whether requests have the object under ``key``, too.
    wraps_body: bool = False
    #: Whether the service divides the list into pages.
    has_pages: bool = False
    #: Whether the service also finds an object by its name, so that only other references need the list.
    finds_names: bool = False
    #: Parameters of each request for one object or for the list.
    query: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = self.key or self.noun
        self.plural = self.plural or f"{self.key}s"

    def all(self, *, limit: int | None = None, **query: Any) -> list[Object]:
        """
        Return the objects, in the order of the service, or the first ``limit`` ones. ``query``: filters of the API.
        """
        query = {**self.query, **query}
        if not self.has_pages:
            return part(self.wire.get(self.path, query), self.plural)[:limit]
        size = min(limit or self.page_size, self.page_size)
        pages = iterate_pages(self.wire, self.path, self.plural, query, size, id_key=self.id_key)
        return list(islice(pages, limit))

    def find_id(self, ref: str) -> str:
        """Return the id of an object. Raises NotFound or Ambiguous."""
        if is_id(ref):
            return ref
        return str(self.show(ref)["id"]) if self.finds_names else self._search(ref)

    def resolvable(self, ref: str) -> str:
        """Return a reference that the service resolves in requests: a name, or the id for other references."""
        return self.find_id(ref) if self._needs_list(ref) else ref

    def show(self, ref: str, *, patient: bool = False, **query: Any) -> Object:
        """Return one object. ``patient`` waits for a service that restarts. Raises NotFound or Ambiguous."""
        return self._one(self._at(ref, lambda path: self.wire.get(path, {**self.query, **query}, patient=patient)))

    def _act(self, ref: str, action: str, body: Mapping[str, Any] | None = None) -> Any:
        """Request an action on an object. Return the answer."""
        return self._at(ref, lambda path: self.wire.send("POST", f"{path}/{action}", body))

    def _at(self, ref: str, call: Callable[[str], Answer]) -> Answer:
        """Return the result of ``call`` with the path of an object."""
        if not self.finds_names:
            return call(self._path_of(self.find_id(ref)))
        try:
            return call(self._path_of(ref))
        except NotFound:
            if not self._needs_list(ref):
                raise
        return call(self._path_of(self._search(ref)))

    def _search(self, ref: str) -> str:
        """Return the id of an object that the list has."""
        return str(choose(self.all(), ref, self.noun)["id"])

    def _needs_list(self, ref: str) -> bool:
        """Whether ``ref``, which the service does not find, may be a reference that only the client resolves."""
        return is_prefix(ref)

    def _path_of(self, id_: str) -> str:
        return f"{self.path}/{segment(id_)}"

    def _one(self, answer: Any) -> Object:
        return part(answer, self.key)


class Collection(ReadOnlyCollection[Object]):
    """Objects that can be created, changed and deleted."""

    def create(self, body: Mapping[str, Any]) -> Object:
        """Create an object. The answer may contain a secret that no other answer contains."""
        return self._one(self.wire.send("POST", self.path, self._wrap(body)))

    def change(self, ref: str, changes: Mapping[str, Any]) -> Object:
        """Change some attributes of an object."""
        return self._one(self._at(ref, lambda path: self.wire.send("PATCH", path, self._wrap(changes))))

    def delete(self, ref: str) -> None:
        """Delete an object."""
        self._at(ref, lambda path: self.wire.send("DELETE", path))

    def _wrap(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {self.key: body} if self.wraps_body else body


class RunCollection(Collection[Object]):
    """Objects with runs, which can be cancelled and followed."""

    def cancel(self, ref: str, *, force: bool = False) -> Object:
        """
        Cancel an object: runs that have not begun never begin, active ones are stopped.

        With ``force``, runs end without a confirmation from their agents.
        """
        return self._one(self._act(ref, "cancel", {"force": force}))

    def events(self, ref: str, kinds: Sequence[str] = (), cursor: str = "") -> Iterator[Event]:
        """
        Yield events until the object has ended: of a deployment ``log``, ``progress`` and ``status``, of a trigger
        ``target``, ``log`` and ``trigger``, and finally ``end``.

        ``kinds`` selects some of them, or compact targets, ``state``. The stream continues after ``cursor``, which is
        that of a page of a log.
        """
        return follow(self.wire, [f"{self.noun}:{self.find_id(ref)}"], kinds, cursor)

    def follow_logs(self, ref: str, cursor: str = "") -> Iterator[Any]:
        """Yield the log after ``cursor`` and new chunks until the object has ended."""
        return (event.data for event in self.events(ref, ["log"], cursor) if event.name == "log")


class Versions(Collection[Anything]):
    """Objects whose versions never change. ``ref`` is ``NAME/VERSION``, also as ``catalog://NAME/VERSION``."""

    def find_id(self, ref: str) -> str:
        """Return the reference without a scheme. Raises BadInput if it is no name and version."""
        name, _, version = ref.rpartition("://")[2].partition("/")
        if not name or not version.isdecimal() or int(version) < 1:
            raise BadInput(f"{ref!r} is not a name and a version, such as nginx/1")
        return f"{name}/{int(version)}"

    def _path_of(self, id_: str) -> str:
        name, _, version = id_.partition("/")
        return f"{self.path}/{segment(name)}/{version}"


def iterate_pages(
    wire: Wire, path: str, key: str, query: Mapping[str, Any], size: int, *, id_key: str = "id"
) -> Iterator[Any]:
    """Yield all entries of the list under ``key``, each once. The list is read in pages of ``size`` entries."""
    marker = None
    yielded = set()
    while True:
        page = part(wire.get(path, {**query, "limit": size, "marker": marker}), key)
        for entry in page:
            # A list may begin again if the last entry of a page was deleted before the next page was read.
            if entry[id_key] not in yielded:
                yielded.add(entry[id_key])
                yield entry
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


#: Shortest prefix in characters. A shorter one is more likely a mistake.
MIN_PREFIX = 4
#: Number of candidates in an error message.
_MOST_CANDIDATES = 5
_ID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_PREFIX = re.compile(rf"[0-9a-f-]{{{MIN_PREFIX},36}}", re.IGNORECASE)
#: Attributes that distinguish candidates, in the order of display.
_DETAILS = ("name", "stack_name", "server_id", "status", "stack_status", "creation_time", "created_at")


def is_id(ref: str) -> bool:
    """Whether ``ref`` is a complete id, so that no list needs to be searched."""
    return _ID.fullmatch(ref) is not None


def is_prefix(ref: str) -> bool:
    """Whether ``ref`` may be a prefix of an id."""
    return _PREFIX.fullmatch(ref) is not None and not is_id(ref)


def is_pattern(ref: str) -> bool:
    """Whether ``ref`` is a pattern for several names, such as ``web*``."""
    return not {"*", "?", "["}.isdisjoint(ref)


def choose(objects: Iterable[Object], ref: str, noun: str, *, name_key: str = "name") -> Object:
    """
    Return the object whose id or name is ``ref``, or else whose id begins with it.

    Raises NotFound, or Ambiguous with the candidates.
    """
    choices = list(objects)
    for key in ("id", name_key):
        if same := [choice for choice in choices if choice.get(key) == ref]:
            return _only(same, ref, f"are named {ref!r}", noun)
    begin = ref.lower() if is_prefix(ref) else ref
    if len(ref) >= MIN_PREFIX and (matches := [choice for choice in choices if str(choice["id"]).startswith(begin)]):
        return _only(matches, ref, f"have ids that begin with {ref!r}", noun)
    command = noun.replace(" ", "-")
    raise NotFound(f"there is no {noun} {ref!r}; `stoker {command} list` lists them", 404)


def _only(candidates: Sequence[Object], ref: str, what: str, noun: str) -> Object:
    if len(candidates) == 1:
        return candidates[0]
    lines = [_candidate(choice, ref) for choice in candidates[:_MOST_CANDIDATES]]
    if len(candidates) > _MOST_CANDIDATES:
        lines.append(f"{len(candidates) - _MOST_CANDIDATES} more")
    raise Ambiguous(f"{len(candidates)} {noun}s {what}: {', '.join(lines)}; give one of the ids")


def _candidate(candidate: Mapping[str, Any], ref: str) -> str:
    details = [str(candidate[key]) for key in _DETAILS if candidate.get(key) not in (None, "", ref)]
    return f"{candidate['id']} ({' '.join(details)})" if details else str(candidate["id"])
