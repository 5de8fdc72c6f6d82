"""Migrates a template with its nested templates and environments, and decides where the results are written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from stoker_client.errors import BadInput
from stoker_client.templates import locations
from stoker_client.templates.bundle import NESTED, NOT_FILES
from stoker_client.templates.documents import parse
from stoker_migrate.template.parts import Change, Interface, Report, TemplateContext
from stoker_migrate.template.references import calls
from stoker_migrate.template.source_text import SourceText, mapping_at
from stoker_migrate.template.template import migrate_template
from stoker_migrate.template.types import TypeRegistry, is_infrastructure


@dataclass
class Migrated:
    """A migrated file."""

    url: str
    text: str
    interface: Interface = field(default_factory=Interface)
    is_changed: bool = True


@dataclass(frozen=True)
class Migration:
    """The result: the template, its environments and nested templates, and the report."""

    template: Migrated
    environments: list[Migrated]
    nested: list[Migrated]
    report: Report

    def place(self, output: Path) -> dict[Path, str]:
        """
        Return the texts by path, with the template at ``output`` and all other changed files in its directory.

        The names of files in the texts are relative to the new places. A file keeps its base name, unless it would
        replace an original. Raises BadInput if two files have the same base name.
        """
        originals = {_path(file.url) for file in (self.template, *self.environments, *self.nested)}
        places = {self.template.url: output.absolute()}
        for file in (*self.environments, *(nested for nested in self.nested if nested.is_changed)):
            place = output.absolute().parent / _path(file.url).name
            if place in originals:
                place = place.with_name(f"{place.stem}.migrated{place.suffix}")
            if place in places.values():
                raise BadInput(f"two files would be written to {place}: rename one of the originals")
            places[file.url] = place
        if places[self.template.url] in originals:
            raise BadInput(f"{output} is a file of the original stack: name another file with -o")
        files = {file.url: file for file in (self.template, *self.environments, *self.nested)}
        return {place: _relocate(files[url], places) for url, place in places.items()}


def migrate_files(template: str, environments: Sequence[str]) -> Migration:
    """Migrate a template and its environments, which are paths or URLs. Raises BadInput."""
    loaded = [(locations.locate(name), name) for name in environments]
    texts = {url: locations.read(url, "--environment") for url, _ in loaded}
    data = [(url, parse(texts[url], name) or {}) for url, name in loaded]
    tree = _Tree(TypeRegistry(data))
    url = locations.locate(template)
    main = tree.migrate(url, template, is_root=True)
    changed = [_migrate_environment(url, name, texts[url], main.interface, tree.report) for url, name in loaded]
    return Migration(main, changed, [file for key, file in tree.done.items() if key != url], tree.report)


class _Tree:
    """The templates of a stack, each migrated once."""

    def __init__(self, registry: TypeRegistry) -> None:
        self._registry = registry
        self._open: set[str] = set()
        self.done: dict[str, Migrated] = {}
        self.report = Report()

    def migrate(self, url: str, title: str, *, is_root: bool = False) -> Migrated:
        if url in self._open:
            raise BadInput(f"{title} contains itself")
        if url not in self.done:
            self._open.add(url)
            text = locations.read(url, title)
            context = TemplateContext(
                title=title,
                is_root=is_root,
                report=self.report,
                resolve=partial(self._registry.resolve, base=url),
                migrate=lambda nested: self.migrate(nested, _title(nested)).interface,
                read=partial(_read, url, title),
            )
            changed, interface = migrate_template(text, context)
            self.done[url] = Migrated(url, changed, interface, changed != text)
            self._open.discard(url)
        return self.done[url]


def _migrate_environment(url: str, title: str, text: str, interface: Interface, report: Report) -> Migrated:
    """Remove the parameters that the template no longer has, and mappings to types of clouds."""
    if not parse(text, title):
        return Migrated(url, text, is_changed=False)
    source = SourceText(text, title)
    for section in ("parameters", "parameter_merge_strategies"):
        for name in source.section(section):
            if name in interface.removed:
                source.remove((section, name))
                report.add(title, f"{section}.{name}", Change.DROPPED, "the template no longer has the parameter")
    for name, target in source.section("resource_registry").items():
        if name not in NOT_FILES and isinstance(target, str) and is_infrastructure(target):
            source.remove(("resource_registry", name))
            report.add(title, f"resource_registry.{name}", Change.DROPPED, f"the type {target} needs a cloud")
    if interface.needed:
        names = ", ".join(new.name for new in interface.needed)
        report.add(title, "parameters", Change.WARNING, f"set the new parameters {names}")
    return Migrated(url, source.render())


def _relocate(file: Migrated, places: dict[str, Path]) -> str:
    """Return the text with the names of local files relative to its new place."""
    if not parse(file.text, file.url):  # an empty environment
        return file.text
    source = SourceText(file.text, file.url)
    base, folder = file.url, places[file.url].parent
    is_environment = "heat_template_version" not in source.data
    for path, name in _names(source.data, is_environment=is_environment):
        url = locations.locate(name, base)
        target = places.get(url, _path(url)) if not locations.is_web(url) else None
        if target is not None and target != folder / name:
            source.replace(path, os.path.relpath(target, folder))
    return source.render()


def _names(data: dict[str, Any], *, is_environment: bool) -> list[tuple[tuple[Any, ...], str]]:
    """Return the names of files in a template or an environment, with their paths."""
    if is_environment:
        registry = mapping_at(data, "resource_registry")
        return [
            (("resource_registry", key), value)
            for key, value in (registry if "base_url" not in registry else {}).items()
            if key not in NOT_FILES and isinstance(value, str) and "::" not in value
        ]
    names = [((*path, "get_file"), name) for path, _, name in calls(data, ("get_file",)) if isinstance(name, str)]
    return names + _nested_types(data.get("resources"), ("resources",))


def _nested_types(value: Any, path: tuple[Any, ...]) -> list[tuple[tuple[Any, ...], str]]:
    if not isinstance(value, dict):
        return []
    names = []
    for key, inner in value.items():
        if key == "type" and isinstance(inner, str) and inner.endswith(NESTED) and not locations.is_catalog(inner):
            names.append(((*path, key), inner))
        elif key == "resources" and isinstance(inner, list):  # of a chain
            names += [((*path, key, n), name) for n, name in enumerate(inner) if str(name).endswith(NESTED)]
        else:
            names += _nested_types(inner, (*path, key))
    return names


def _read(base: str, title: str, name: str) -> str | None:
    try:
        return locations.read(locations.locate(name, base), title)
    except BadInput:
        return None


def _title(url: str) -> str:
    return url if locations.is_web(url) else os.path.relpath(_path(url))


def _path(url: str) -> Path:
    return Path(url) if locations.is_web(url) else locations.to_path(url)
