"""
Functions of the language that have no file here: the first version that has each, the first that has it no more.

Naming them keeps a template that calls one from being taken for data.
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
    "resource_facade": (_FIRST, None),
    "digest": ("2015-04-30", None),
    "repeat": ("2015-04-30", None),
    "str_split": ("2015-10-15", None),
    "map_merge": ("2016-04-08", None),
    "if": ("2016-10-14", None),
    "map_replace": ("2016-10-14", None),
    "yaql": ("2016-10-14", None),
    "filter": ("2017-02-24", None),
    "str_replace_strict": ("2017-02-24", None),
    "contains": ("2017-09-01", None),
    "list_concat": ("2017-09-01", None),
    "list_concat_unique": ("2017-09-01", None),
    "make_url": ("2017-09-01", None),
    "str_replace_vstrict": ("2017-09-01", None),
}
