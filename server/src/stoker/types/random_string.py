"""OS::Heat::RandomString: a random string that does not change after creation."""

from __future__ import annotations

import secrets
import string
from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, NoSuchAttribute, Outcome, Properties, ResourceType, physical_name
from stoker.resources.properties import Property

CLASSES = {
    "lettersdigits": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "lowercase": string.ascii_lowercase,
    "uppercase": string.ascii_uppercase,
    "digits": string.digits,
    "hexdigits": string.digits + "ABCDEF",
    "octdigits": string.octdigits,
}
_random = secrets.SystemRandom()


def generate(properties: Properties) -> str:
    """Return a random string with the minimum of each class and sequence; the other characters are from all of them."""
    alphabets = _alphabets(properties)
    chosen = [_random.choice(characters) for characters, least in alphabets for _ in range(least)]
    anything = "".join(characters for characters, _ in alphabets)
    chosen += [_random.choice(anything) for _ in range(properties["length"] - len(chosen))]
    _random.shuffle(chosen)
    return "".join(chosen)


def _alphabets(properties: Properties) -> list[tuple[str, int]]:
    alphabets = [(CLASSES[entry["class"]], entry["min"]) for entry in properties["character_classes"] or ()]
    alphabets += [(entry["sequence"], entry["min"]) for entry in properties["character_sequences"] or ()]
    if properties.get("sequence"):
        alphabets.append((CLASSES[properties["sequence"]], 1))
    return alphabets or [(CLASSES["lettersdigits"], 1)]


def _listed(entries: Any) -> list[Any]:
    return [] if entries is UNKNOWN or entries is None else [entry for entry in entries if entry is not UNKNOWN]


_LEAST = Property(kind="integer", default=1, minimum=1, maximum=512)


class RandomString(ResourceType):
    name = "OS::Heat::RandomString"
    description = "A random string, made once and kept."
    properties = {
        "length": Property(kind="integer", default=32, minimum=1, maximum=512, description="How many characters."),
        "character_classes": Property(
            kind="list",
            each=Property(
                kind="map",
                schema={
                    "class": Property(kind="string", default="lettersdigits", allowed=tuple(CLASSES)),
                    "min": _LEAST,
                },
            ),
            description="Kinds of characters to take from, and how many of each at least.",
        ),
        "character_sequences": Property(
            kind="list",
            each=Property(kind="map", schema={"sequence": Property(kind="string", required=True), "min": _LEAST}),
            description="Further characters to take from.",
        ),
        "sequence": Property(
            kind="string",
            allowed=tuple(CLASSES),
            description="Obsolete: a kind of characters, as in character_classes.",
        ),
        "salt": Property(kind="string", description="Another salt makes another string."),
    }
    attributes = {"value": "The string."}

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return Outcome(physical_id=physical_name(context, resource), data={"value": generate(properties)})

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name != "value":
            raise NoSuchAttribute(name)
        return resource.data.get("value")

    def reference(self, context: Context, resource: Resource) -> Any:
        return resource.data.get("value", resource.name)

    def validate(self, properties: Properties) -> None:
        entries = [*_listed(properties["character_classes"]), *_listed(properties["character_sequences"])]
        least = [*(entry["min"] for entry in entries), 1 if properties["sequence"] else 0]
        if any(number is UNKNOWN for number in (*least, properties["length"])):
            return
        if sum(least) > properties["length"]:
            raise StackValidationFailed(
                "Length property cannot be smaller than combined character class and character sequence minimums"
            )
        if any(entry.get("sequence") == "" for entry in entries):
            raise StackValidationFailed("a character sequence must hold at least one character")
