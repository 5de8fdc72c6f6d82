"""The versions of the language. They are dates, so that text order is age."""

from __future__ import annotations

from typing import Any

from stoker.model.errors import InvalidTemplateVersion

VERSION_KEY = "heat_template_version"

#: Every version with the release name that may stand for it.
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
_FOREIGN = ("AWSTemplateFormatVersion", "HeatTemplateFormatVersion")


def version_of(document: dict[str, Any]) -> str:
    """The date a template declares, its release name resolved."""
    if VERSION_KEY not in document:
        for key in _FOREIGN:
            if key in document:
                raise InvalidTemplateVersion(f'Templates with "{key}" are not supported, only "{VERSION_KEY}"')
        raise InvalidTemplateVersion("Template format version not found.")
    declared = document[VERSION_KEY]
    version = _ALIASES.get(declared, declared) if isinstance(declared, str) else None
    if version not in VERSIONS:
        raise InvalidTemplateVersion(
            f'The template version is invalid: "{VERSION_KEY}: {declared}". '
            f'"{VERSION_KEY}" should be one of: {", ".join([*VERSIONS, *_ALIASES])}'
        )
    return version
