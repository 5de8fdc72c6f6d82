"""
Types without an object elsewhere: OS::Heat::Value, RandomString, Delay and None, and OS::Heat::TestResource, which
waits, fails or requires replacement, for tests of templates.
"""

from __future__ import annotations

import random
import secrets
import string
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from stoker.hot import UNKNOWN, has_unknown
from stoker.hot.parameter_values import convert
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Action, Resource
from stoker.resources.base import (
    DONE,
    LONGEST_WAIT,
    Context,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
    is_waiting,
    physical_name,
    wait_until,
)
from stoker.resources.properties import Property


def convert_value(kind: Any, value: Any) -> Any:
    """Convert ``value`` as a parameter of this type. Raises ValueError if the value does not match the type."""
    if not isinstance(kind, str) or has_unknown(value):
        return value
    return convert(kind, value)


class Value(ResourceType):
    name = "OS::Heat::Value"
    description = "Exposes a value as an attribute."
    properties = {
        "value": Property(kind="any", required=True, update_allowed=True, description="The value."),
        "type": Property(
            kind="string",
            update_allowed=True,
            allowed=("string", "number", "comma_delimited_list", "json", "boolean"),
            description="What the value is to be.",
        ),
    }
    attributes = {"value": "The value."}

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        try:
            value = convert_value(properties["type"], properties["value"])
        except ValueError as error:
            raise ResourceFailure(f"value: {error}") from None
        return Outcome(physical_id=resource.physical_id or physical_name(context, resource), data={"value": value})

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.create(context, resource, properties)

    def validate(self, properties: Properties) -> None:
        try:
            convert_value(properties["type"], properties["value"])
        except ValueError as error:
            raise StackValidationFailed(f"value: {clip(str(error))}") from None


class Nothing(ResourceType):
    name = "OS::Heat::None"
    description = "Does nothing, whatever its properties."
    properties = None
    attributes = None

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return Outcome(physical_id=resource.physical_id or resource.id)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.create(context, resource, properties)

    def attribute(self, context: Context, resource: Resource, name: str) -> None:
        return None


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


def _wait(context: Context, resource: Resource, properties: Properties, action: Action) -> Outcome:
    if not properties or action not in properties["actions"]:  # no properties: the resource was never created
        return DONE
    jitter = random.uniform(0, properties["max_jitter"] * properties["jitter_multiplier"])  # noqa: S311 — no secret
    until = context.tx.now + timedelta(seconds=properties["min_wait"] + jitter)
    return DONE if until <= context.tx.now else wait_until(context, resource, until)


def _number(description: str, default: float) -> Property:
    return Property(
        kind="number",
        minimum=0,
        maximum=LONGEST_WAIT,
        default=default,
        update_allowed=True,
        description=description,
    )


class Delay(ResourceType):
    name = "OS::Heat::Delay"
    description = "Waits for a time."
    properties = {
        "min_wait": _number("Seconds at least.", default=0),
        "max_jitter": _number("Seconds more.", default=0),
        "jitter_multiplier": _number("Multiplies the jitter.", default=1.0),
        "actions": Property(
            kind="list",
            each=Property(kind="string", allowed=("CREATE", "DELETE", "SUSPEND", "RESUME")),
            default=["CREATE"],
            update_allowed=True,
            description="The actions that wait.",
        ),
    }
    actions = (Action.SUSPEND, Action.RESUME)

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return _wait(context, resource, properties, Action.CREATE)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return DONE

    def delete(self, context: Context, resource: Resource) -> Outcome:
        return _wait(context, resource, resource.properties, Action.DELETE)

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        return _wait(context, resource, resource.properties, action)

    def check(self, context: Context, resource: Resource) -> Outcome:
        return Outcome(not is_waiting(context, resource))

    def validate(self, properties: Properties) -> None:
        least, jitter, multiplier = (properties[name] for name in ("min_wait", "max_jitter", "jitter_multiplier"))
        if UNKNOWN not in (least, jitter, multiplier) and least + jitter * multiplier > LONGEST_WAIT:
            raise StackValidationFailed(f"min_wait and max_jitter: it may wait no longer than {LONGEST_WAIT} seconds")


_SECONDS = Property(kind="number", minimum=0, maximum=LONGEST_WAIT)
_ACTION_SECONDS = dict.fromkeys(("create", "update", "delete"), _SECONDS)


def _begin(context: Context, resource: Resource, properties: Properties) -> Outcome:
    waits = (properties["action_wait_secs"] or {}).get(resource.action.value.lower())
    seconds = properties["wait_secs"] if waits is None else waits
    if not seconds:
        return _end(context, resource, properties)
    outcome = wait_until(context, resource, context.tx.now + timedelta(seconds=seconds))
    return replace(outcome, physical_id=_id(context, resource))


def _end(context: Context, resource: Resource, properties: Properties) -> Outcome:
    if properties["fail"] and resource.action is not Action.DELETE:
        raise ResourceFailure(f"Test Resource failed {resource.name}")
    return Outcome(physical_id=_id(context, resource))


def _id(context: Context, resource: Resource) -> str:
    return resource.physical_id or physical_name(context, resource)


class TestResource(ResourceType):
    name = "OS::Heat::TestResource"
    description = "Waits, fails, or is replaced as its properties say."
    properties = {
        "value": Property(kind="string", default="test_string", update_allowed=True, description="What output gives."),
        "fail": Property(kind="boolean", default=False, update_allowed=True, description="Fail, after any wait."),
        "update_replace": Property(
            kind="boolean", default=False, update_allowed=True, description="Be replaced by an update."
        ),
        "update_replace_value": Property(kind="string", description="Be replaced when this changes."),
        "wait_secs": Property(
            kind="number",
            default=0,
            minimum=0,
            maximum=LONGEST_WAIT,
            update_allowed=True,
            description="Seconds that every action takes.",
        ),
        "action_wait_secs": Property(
            kind="map", schema=_ACTION_SECONDS, update_allowed=True, description="Seconds that single actions take."
        ),
        "attr_wait_secs": Property(kind="number", default=0, update_allowed=True, description="Accepted; never waits."),
        "constraint_prop_secs": Property(kind="number", default=0, update_allowed=True, description="Accepted."),
        "client_name": Property(kind="string", update_allowed=True, description="Accepted."),
        "entity_name": Property(kind="string", update_allowed=True, description="Accepted."),
    }
    attributes = {"output": "The value."}

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return _begin(context, resource, properties)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        if properties["update_replace"]:
            raise Replace(resource.name)
        return _begin(context, resource, properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        return _begin(context, resource, resource.properties) if resource.properties else DONE

    def check(self, context: Context, resource: Resource) -> Outcome:
        return Outcome(False) if is_waiting(context, resource) else _end(context, resource, resource.properties)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        return resource.properties.get("value")
