"""Types of the members of requests and responses: bounded numbers and strings, times, values that a handler checks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, UnsetType

from stoker.model.server import LONGEST_ID
from stoker.store.rows import heat_time
from stoker.typed_values import NO_NUL as NO_NUL  # noqa: PLC0414  # for importers, beside the strings below
from stoker.typed_values import RequiredName as RequiredName  # noqa: PLC0414  # as above
from stoker.typed_values import RequiredShortText as RequiredShortText  # noqa: PLC0414  # as above

T = TypeVar("T", bound=Struct)

#: The maximum of a row number in the database.
LAST = 2**63 - 1
_LARGEST = 2**31 - 1


#: Numbers of requests, and the number of a row of the database or the position after one.
Whole = Annotated[int, Meta(ge=0, le=_LARGEST)]
Positive = Annotated[int, Meta(ge=1, le=_LARGEST)]
Position = Annotated[int, Meta(ge=0, le=LAST)]
RowNumber = Annotated[int, Meta(ge=1, le=LAST)]
#: Whole seconds stay whole.
Seconds = Annotated[int, Meta(gt=0, lt=2**31)] | Annotated[float, Meta(gt=0, lt=2**31)]
#: A time in Heat's format, in responses.
Time = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
#: A time in requests, with its offset, such as ``2026-01-01T00:00:00Z``.
Moment = Annotated[datetime, Meta(tz=True)]
Id = Annotated[str, Meta(min_length=1)]
#: Strings of requests. The database stores no NUL.
Text = Annotated[str, Meta(pattern=NO_NUL)]
Name = Annotated[str, Meta(max_length=255, pattern=NO_NUL)]
ShortText = Annotated[str, Meta(max_length=64, pattern=NO_NUL)]
LongText = Annotated[str, Meta(max_length=65535, pattern=NO_NUL)]
ServerId = Annotated[str, Meta(max_length=LONGEST_ID, pattern=NO_NUL)]
#: Counters of responses.
Count = Annotated[int, Meta(ge=0, le=LAST)]

#: A member of a response that may be absent.
Absent = UnsetType


#: The types of ``described`` values. The schemas of these values have a position in this list as a member
#: ``DESCRIBED``, because msgspec admits only JSON there; ``http.openapi`` replaces the member by the type's schema.
DESCRIBED_TYPES: list[Any] = []
DESCRIBED = "x-stoker-described"


def described(kind: Any, description: str | None = None) -> Meta:
    """
    Return what the OpenAPI document says of a value of any type that the handler passes on to a function that checks
    it. ``kind`` is the type of valid values:

        Inputs = Annotated[Any, described(list[ConfigInput])]
    """
    DESCRIBED_TYPES.append(kind)
    return Meta(description=description, extra_json_schema={DESCRIBED: len(DESCRIBED_TYPES) - 1})


class Query(Struct):
    """The parameters of a query string. A parameter that may occur several times is a tuple."""


class Body(Struct):
    """The JSON object of a request. Unknown members are ignored, as in Heat."""


class StrictBody(Body):
    """As ``Body``, of Keystone's and Zaqar's API: strings are neither numbers nor booleans there."""


class Answer(Struct, forbid_unknown_fields=True):
    """A JSON object in a response, with exactly these members."""


class Link(Answer):
    href: str
    rel: str


def fill(kind: type[T], source: object, /, **computed: Any) -> T:
    """
    Return an object of the type ``kind`` with the attributes of ``source`` that have the names of its members.

    Times become strings in Heat's format. ``computed`` are the members that are not such attributes.
    """
    for name in kind.__struct_fields__:
        if name not in computed:
            value = getattr(source, name)
            computed[name] = heat_time(value) if type(value) is datetime else value
    return kind(**computed)
