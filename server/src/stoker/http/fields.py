"""
Types of the members of requests and responses: Heat's flags and numbers, bounded strings, times.

Heat's clients send flags and numbers also as strings. msgspec calls ``decode`` for the types of this module that are
classes; type checkers see the Python type of the decoded value.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from msgspec import Meta, Struct, UnsetType

from stoker.model.server import LONGEST_ID
from stoker.store.rows import heat_time
from stoker.typed_values import NO_NUL as NO_NUL  # noqa: PLC0414  # for importers, beside the strings below
from stoker.typed_values import RequiredName as RequiredName  # noqa: PLC0414  # as above
from stoker.typed_values import RequiredShortText as RequiredShortText  # noqa: PLC0414  # as above

T = TypeVar("T", bound=Struct)
Schema = Mapping[str, Any]

#: The maximum of a row number in the database.
LAST = 2**63 - 1
_LARGEST = 2**31 - 1


class Decoded(ABCMeta):
    """The metaclass of types whose values ``decode`` has checked: every object is an instance of such a type."""

    parse: Callable[[Any], Any]
    #: The JSON schema, or the type that describes the value in the OpenAPI document.
    schema: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return True


def decode(kind: type, value: Any) -> Any:
    """Return the value of a type of this module; msgspec's ``dec_hook``. Raises ValueError with the expectation."""
    if not isinstance(kind, Decoded):
        raise NotImplementedError(f"no type of a request's member: {kind}")
    return kind.parse(value)


def _type(name: str, parse: Callable[[Any], Any], schema: Schema) -> Any:
    return Decoded(name, (), {"parse": staticmethod(parse), "schema": schema})


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word not in ("true", "false"):
        raise ValueError(f"must be true or false, not {value!r:.100}")
    return word == "true"


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        digits = str(value).removeprefix("-")
        # Python refuses to parse integers of more than 4,300 digits.
        if isinstance(value, bool) or not (isinstance(value, int) or (digits.isdecimal() and len(digits) <= 100)):
            raise ValueError(f"must be a whole number, not {value!r:.100}")
        number = int(value)
        if number < least:
            raise ValueError(f"must be at least {least}, not {number}")
        if number > most:
            raise ValueError(f"must be at most {most}, not {number}")
        return number

    return parse


def integer(name: str, least: int, most: int = _LARGEST) -> Any:
    """Return the type of an integer in this range, or of its decimal digits."""
    return _type(name, _whole(least, most), {"type": "integer", "minimum": least, "maximum": most})


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**31:
        raise ValueError(f"must be a number of seconds, not {value!r:.100}")
    return value


def _tags(value: Any) -> list[str]:
    if not isinstance(value, str):
        raise ValueError("must be a string with commas")  # noqa: TRY004  # msgspec words ValueErrors
    if len(value) > 4096 or "\0" in value:
        raise ValueError("must have at most 4096 characters, without NUL")
    tags = [tag.strip() for tag in value.split(",") if tag.strip()]
    for tag in tags:
        if len(tag) > 80:
            raise ValueError(f"must have at most 80 characters each: the tag {tag!r:.100} is longer")
    return tags


if TYPE_CHECKING:
    Tags = list[str]
    Flag = bool
    Whole = int
    Positive = int
    Position = int
    RowNumber = int
    Seconds = float
    Time = str
else:
    #: A boolean, or its name in any case.
    Flag = _type("Flag", _flag, {"type": ["boolean", "string"], "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$"})
    #: An integer, or its decimal digits.
    Whole = integer("Whole", 0)
    Positive = integer("Positive", 1)
    #: A position after a row of the database, and the number of a row.
    Position = integer("Position", 0, LAST)
    RowNumber = integer("RowNumber", 1, LAST)
    #: Heat's string of tags, separated by commas.
    Tags = _type("Tags", _tags, {"type": "string", "description": "Tags, separated by commas"})
    Seconds = _type("Seconds", _seconds, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 2**31})
    #: A time in Heat's format, in responses.
    Time = _type("Time", str, {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"})

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


class Unchecked(metaclass=Decoded):
    """
    Any value, which the handler passes on to a function that checks it. ``schema`` describes valid values:

        class Inputs(Unchecked):
            schema = list[ConfigInput]
    """

    schema: ClassVar[Any] = {}

    @staticmethod
    def parse(value: Any) -> Any:
        return value


class Query(Struct):
    """The parameters of a query string. A parameter that may occur several times is a tuple."""


class Body(Struct):
    """The JSON object of a request. Unknown members are ignored, as in Heat."""


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
