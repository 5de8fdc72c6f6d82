"""The CloudFormation functions that ``foreign`` translates to HOT."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.hot.syntaxes import ReplacedCall

#: From this version on, HOT has none of these functions.
REPLACED_UNTIL = "2014-10-16"

REPLACED: Mapping[str, ReplacedCall] = {
    "Ref": ReplacedCall("The value of a parameter, or the reference of a resource.", REPLACED_UNTIL),
    "Fn::GetAZs": ReplacedCall("The availability zones of a region.", REPLACED_UNTIL),
    "Fn::Join": ReplacedCall("A list's items with a delimiter between them.", REPLACED_UNTIL),
    "Fn::Replace": ReplacedCall("A text with words replaced.", REPLACED_UNTIL),
    "Fn::Base64": ReplacedCall("The text itself: the service that passes it to a server encodes it.", REPLACED_UNTIL),
    "Fn::ResourceFacade": ReplacedCall("What the resource that a nested stack is has been given.", REPLACED_UNTIL),
    "Fn::GetAtt": ReplacedCall("An attribute of a resource."),
    "Fn::FindInMap": ReplacedCall("A value of the section Mappings."),
    "Fn::If": ReplacedCall("One of two values, as a condition says."),
    "Fn::Equals": ReplacedCall("Whether two values are the same."),
    "Fn::And": ReplacedCall("Whether all conditions hold."),
    "Fn::Or": ReplacedCall("Whether any condition holds."),
    "Fn::Not": ReplacedCall("Whether a condition does not hold."),
}
