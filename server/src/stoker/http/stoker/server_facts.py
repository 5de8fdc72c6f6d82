"""/v1/{project}/server_counts and server_facts: what the servers of a project are, in numbers (Stoker's own)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta

from stoker.http.contracts import Answer, Count, operation
from stoker.http.request import RequestContext
from stoker.http.stoker.servers import ServerFilter, list_states, select_ids
from stoker.model.selectors import text_of
from stoker.model.server import FACT_NAMES
from stoker.store import server_lists
from stoker.store.tx import Tx

#: The most frequent values of one name, and the longest value, that the list of facts contains.
_MOST_VALUES, _LONGEST = 50, 100


class ServerCounts(Answer):
    total: Count
    outdated: Annotated[Count, Meta(description="Servers whose agents have another version than this Stoker")]
    by_status: dict[str, Count]


class FactValue(Answer):
    value: str
    count: Annotated[Count, Meta(description="The number of servers with this value")]


class FactName(Answer):
    name: Annotated[str, Meta(description="As in selectors, such as os.family, or the name of a label")]
    is_label: bool
    count: Annotated[Count, Meta(description="The number of servers that have the label or fact")]
    values: Annotated[list[FactValue], Meta(description="The most frequent ones, at most 50")]


@operation(200, {"server_counts": ServerCounts})
def count(request: RequestContext, tx: Tx, query: ServerFilter) -> dict[str, Any]:
    """Count the project's servers that a query selects, as in the list of servers."""
    chosen = select_ids(request, tx, query)
    states = [
        (status, is_outdated)
        for id, status, is_outdated in list_states(request.app, request.project, tx)
        if chosen is None or id in chosen
    ]
    by_status = dict(sorted(Counter(status for status, _ in states).items()))
    outdated = sum(is_outdated for _, is_outdated in states)
    return {"server_counts": ServerCounts(total=len(states), outdated=outdated, by_status=by_status)}


@operation(200, {"server_facts": list[FactName]})
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the names that a selector can use, the labels and the facts of the project's servers, with their values."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    has: Counter[str] = Counter()
    label_names: set[str] = set()
    for labels, facts in server_lists.iterate_facts(tx, request.project):
        named = defaultdict[str, set[str]](set)
        for name, value in labels.items():
            key = name if name.partition(".")[0] not in FACT_NAMES else f"label.{name}"
            named[key].add(value)
            label_names.add(key)
        for name, value in _flatten(facts, ""):
            named[name].add(value)
        has.update(named.keys())
        for name, values in named.items():
            counts[name].update(value for value in values if len(value) <= _LONGEST)
    return {
        "server_facts": [
            FactName(
                name=name,
                is_label=name in label_names,
                count=has[name],
                values=[FactValue(value=value, count=count) for value, count in counts[name].most_common(_MOST_VALUES)],
            )
            for name in sorted(counts)
        ]
    }


def _flatten(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield the names and the values of facts as selectors read them."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for inner in value:
            if not isinstance(inner, Mapping):
                yield from _flatten(inner, name)
    elif value is not None and name:
        yield name, text_of(value)
