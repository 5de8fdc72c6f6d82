"""
Versions of the template language, and the pseudo parameters, which every template has without declaring them.

Versions are dates, so comparing texts compares ages.

Templates of other syntaxes (``syntaxes``) have versions before all of HOT's.
"""

from __future__ import annotations

from typing import Any

from stoker.hot import syntaxes
from stoker.model.errors import InvalidTemplateVersion

VERSION_KEY = "heat_template_version"

#: All versions, with the release name that may replace each.
VERSIONS: dict[str, str | None] = {
    "2013-05-23": None,
    "2014-10-16": None,
    "2015-04-30": None,
    "2015-10-15": None,
    "2016-04-08": None,
    "2016-10-14": "newton",
    "2017-02-24": "ocata",
    "2017-09-01": "pike",
    "2018-03-02": "queens",
    "2018-08-31": "rocky",
    "2021-04-16": "wallaby",
}

_ALIASES = {alias: version for version, alias in VERSIONS.items() if alias}
_CONDITIONS_SINCE = "2016-10-14"


def has_conditions(version: str) -> bool:
    """Whether the version supports conditions."""
    return version >= _CONDITIONS_SINCE or version in syntaxes.versions()


def version_of(document: dict[str, Any]) -> str:
    """The version that a template declares, with its release name resolved to the date."""
    if VERSION_KEY not in document:
        for version, key in syntaxes.versions().items():
            if key in document:
                return _foreign_version(key, version, document)
        raise InvalidTemplateVersion("Template format version not found.")
    declared = document[VERSION_KEY]
    dated = _ALIASES.get(declared, declared) if isinstance(declared, str) else None
    if dated not in VERSIONS:
        raise InvalidTemplateVersion(
            f'The template version is invalid: "{VERSION_KEY}: {declared}". '
            f'"{VERSION_KEY}" should be one of: {", ".join([*VERSIONS, *_ALIASES])}'
        )
    return dated


def _foreign_version(key: str, version: str, document: dict[str, Any]) -> str:
    keys = syntaxes.versions().values()
    if any(other in document for other in keys if other != key):
        raise InvalidTemplateVersion(f"Ambiguous versions ({', '.join(keys)})")
    if document[key] != version:
        raise InvalidTemplateVersion(
            f'The template version is invalid: "{key}: {document[key]}". "{key}" should be: {version}'
        )
    return version


_HOT = frozenset(("OS::stack_id", "OS::stack_name", "OS::project_id"))
_CFN = frozenset(("AWS::StackId", "AWS::StackName", "AWS::Region"))
#: Names that no parameter may have, in any syntax.
RESERVED = _HOT | _CFN


def pseudo_parameters(version: str) -> frozenset[str]:
    """The pseudo parameters of a version."""
    return _CFN if version in syntaxes.versions() else _HOT
