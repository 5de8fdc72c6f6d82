"""The catalog entries and libraries that Stoker ships, read from the package ``stoker_catalog``."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable

_PACKAGE = "stoker_catalog"


@cache
def list_entries() -> tuple[tuple[str, int], ...]:
    """Return the name and version of every entry, sorted."""
    versions = (
        (folder.name, int(file.name.removesuffix(".yaml")))
        for folder in _folder("entries").iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".yaml")
    )
    return tuple(sorted(versions))


@lru_cache(maxsize=256)
def find_entry(name: str, version: int) -> str | None:
    """Return the text of an entry, or None."""
    if (name, version) not in list_entries():
        return None
    return _folder("entries").joinpath(name, f"{version}.yaml").read_text(encoding="utf-8")


@cache
def list_libraries() -> tuple[str, ...]:
    """Return the names of the libraries, such as ``steps/1``."""
    files = (file.name for file in _folder("libraries").iterdir() if file.name.endswith(".py"))
    return tuple(sorted(name.removesuffix(".py").replace("_", "/") for name in files))


@lru_cache(maxsize=16)
def find_library(name: str) -> str | None:
    """Return the source of a library, or None."""
    if name not in list_libraries():
        return None
    return _folder("libraries").joinpath(f"{name.replace('/', '_')}.py").read_text(encoding="utf-8")


def _folder(name: str) -> Traversable:
    return resources.files(_PACKAGE).joinpath(name)
