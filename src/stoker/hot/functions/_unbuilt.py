"""
Functions of the language that have no file here: the first version that has each, the first that has it no more.

Naming them keeps a template that calls one from being taken for data. The old ones of CloudFormation's syntax that HOT
had until 2014 are understood in templates of that syntax only.
"""

from __future__ import annotations

_FIRST = "2013-05-23"

UNBUILT: dict[str, tuple[str, str | None]] = {
    "Ref": (_FIRST, "2014-10-16"),
    "Fn::GetAZs": (_FIRST, "2014-10-16"),
    "Fn::Join": (_FIRST, "2014-10-16"),
    "Fn::Split": (_FIRST, "2014-10-16"),
    "Fn::Replace": (_FIRST, "2014-10-16"),
    "Fn::Base64": (_FIRST, "2014-10-16"),
    "Fn::MemberListToMap": (_FIRST, "2014-10-16"),
    "Fn::ResourceFacade": (_FIRST, "2014-10-16"),
    "Fn::Select": (_FIRST, "2015-10-15"),
}
