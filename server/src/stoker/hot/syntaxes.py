"""
Versions of the template language (HOT), and other syntaxes, which packages translate to HOT. All later code handles HOT
only.

Versions are dates, so comparing texts compares ages; those of other syntaxes are before all of HOT's. The pseudo
parameters are those that every template has without declaring them.

A package names a ``Syntax`` as an entry point in the group ``stoker.template_syntaxes``. For example, a syntax whose
templates say "machines" instead of "resources"::

    SYNTAX = Syntax(
        versions={"1999-01-01": "machines_version"},
        translate=lambda document: {"resources": document.get("machines", {})},
        source_path=lambda path: ("machines", *path[1:]) if path[:1] == ("resources",) else path,
        calls=frozenset(("get_resource",)),
    )
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from stoker.hot.flaw import Path
from stoker.model.errors import InvalidTemplateVersion

if TYPE_CHECKING:
    from stoker.hot.functions.base import Function


@dataclass(frozen=True, slots=True)
class ReplacedCall:
    """A function that a syntax translates to HOT."""

    description: str
    #: The first version of HOT without the function; None if no version has it.
    until: str | None = None


def _as_it_is(value: Any, _resources: Collection[str], _version: str) -> Any:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntax:
    """A syntax of templates. It has the semantics of the oldest HOT, and conditions."""

    #: The key that declares each version. Versions are dates before all versions of HOT.
    versions: Mapping[str, str]
    #: Translates a document to HOT. Raises flaws.
    translate: Callable[[Mapping[str, Any]], dict[str, Any]]
    #: Translates a path in the HOT document to the path in the source.
    source_path: Callable[[Path], Path]
    #: The functions whose single-key maps are calls after the translation; other names are data.
    calls: frozenset[str]
    #: Functions that HOT lacks.
    functions: Collection[Function] = ()
    #: The functions that ``translate`` replaces.
    replaced: Mapping[str, ReplacedCall] = field(default_factory=dict)
    #: (value, names of resources, version): replaces these functions in a template of an old version of HOT.
    replace_in_hot: Callable[[Any, Collection[str], str], Any] = _as_it_is
    #: The first version of HOT in which ``replace_in_hot`` finds nothing.
    replaces_until: str = ""


@cache
def load() -> tuple[Syntax, ...]:
    """Return the syntaxes of all installed packages. Loaded late, because their modules import this package."""
    return tuple(point.load() for point in entry_points(group="stoker.template_syntaxes"))


@cache
def versions() -> Mapping[str, str]:
    """Return the key that declares each version of all syntaxes."""
    return {version: key for syntax in load() for version, key in syntax.versions.items()}


def of_version(version: str) -> Syntax | None:
    """Return the syntax of a version; None for versions of HOT."""
    return next((syntax for syntax in load() if version in syntax.versions), None)


def declared_by(document: Mapping[str, Any]) -> Syntax | None:
    """Return the syntax of which the document declares a version; None if there is none."""
    return next((syntax for syntax in load() if any(key in document for key in syntax.versions.values())), None)


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
    return version >= _CONDITIONS_SINCE or version in versions()


def version_of(document: dict[str, Any]) -> str:
    """The version that a template declares, with its release name resolved to the date."""
    if VERSION_KEY not in document:
        for version, key in versions().items():
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
    keys = versions().values()
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
    return _CFN if version in versions() else _HOT
