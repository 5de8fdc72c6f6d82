"""The CloudFormation functions that ``hot.foreign`` translates to HOT; they have no modules here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Foreign:
    """A CloudFormation function that has a translation."""

    description: str
    #: The first version of HOT without the function; None if no version has it.
    until: str | None = None


#: From this version on, HOT has none of these functions.
FOREIGN_UNTIL = "2014-10-16"

FOREIGN: Mapping[str, Foreign] = {
    "Ref": Foreign("The value of a parameter, or the reference of a resource.", FOREIGN_UNTIL),
    "Fn::GetAZs": Foreign("The availability zones of a region.", FOREIGN_UNTIL),
    "Fn::Join": Foreign("A list's items with a delimiter between them.", FOREIGN_UNTIL),
    "Fn::Replace": Foreign("A text with words replaced.", FOREIGN_UNTIL),
    "Fn::Base64": Foreign("The text itself: the service that passes it to a server encodes it.", FOREIGN_UNTIL),
    "Fn::ResourceFacade": Foreign("What the resource that a nested stack is has been given.", FOREIGN_UNTIL),
    "Fn::GetAtt": Foreign("An attribute of a resource."),
    "Fn::FindInMap": Foreign("A value of the section Mappings."),
    "Fn::If": Foreign("One of two values, as a condition says."),
    "Fn::Equals": Foreign("Whether two values are the same."),
    "Fn::And": Foreign("Whether all conditions hold."),
    "Fn::Or": Foreign("Whether any condition holds."),
    "Fn::Not": Foreign("Whether a condition does not hold."),
}
