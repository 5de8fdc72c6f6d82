"""The errors and warnings of all templates of one request, with their places in the outermost template."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stoker.hot import Flaw, Flaws
from stoker.hot.paths import Path, heat_path
from stoker.model.errors import RequestLimitExceeded, StokerError
from stoker.resources.properties import PropertyError

#: Maximum number of warnings, because they are sent in a response header.
MOST_WARNINGS = 20


class FlawReport:
    """Collects flaws at the template that is being checked: the outermost one, or a nested one within ``nest``."""

    def __init__(self, flaws: Flaws) -> None:
        """Errors are added to ``flaws``."""
        self._top_flaws = flaws
        #: Errors of the template that is being checked, with paths in that template.
        self.flaws = flaws
        self._warnings: list[Flaw] = []
        #: Names of the resources around the template that is being checked, and their places, from the outside in.
        self._names: list[str] = []
        self._places: list[str] = []

    @property
    def place(self) -> str:
        """The place of the template that is being checked; empty for the outermost one."""
        return "".join(self._places)

    @property
    def top(self) -> str | None:
        """The resource of the outermost template that contains the template; None for the outermost one itself."""
        return self._names[0] if self._names else None

    def add(self, flaw: Flaw) -> None:
        """Add an error."""
        self.flaws.add(flaw)

    def add_property_error(self, error: PropertyError, place: Path) -> None:
        """Add an error of the properties at ``place``."""
        path, shown = (*place, *error.path), heat_path((*place, *error.shown))
        self.add(Flaw(error.problem, path, error="Property error", place=shown))

    def warn(self, flaw: Flaw) -> None:
        """Add a warning, up to ``MOST_WARNINGS``."""
        if len(self._warnings) < MOST_WARNINGS:
            place = self.place.removesuffix(".")
            self._warnings.append(flaw.within(place, ()) if place else flaw)

    def warnings(self) -> list[str]:
        """Return the warnings as sentences."""
        return self._top_flaws.describe(self._warnings)

    @contextmanager
    def collect(self, path: Path, *, named_already: bool = False) -> Iterator[None]:
        """
        Add an error raised inside to the flaws and continue. A passed limit ends the whole check.

        ``named_already``: the message already names the place.
        """
        try:
            yield
        except RequestLimitExceeded as error:
            raise (error if named_already else self.with_place(error, path)) from None
        except StokerError as error:
            sentence = error.message if named_already else f"{heat_path(path)}: {error.message}"
            self.add(Flaw(sentence, path, type(error)))

    def with_place(self, error: RequestLimitExceeded, path: Path) -> RequestLimitExceeded:
        """Return the limit's error with the place of the value that exceeded it."""
        return RequestLimitExceeded(f"{self.place}{heat_path(path)}: {error.message}")

    @contextmanager
    def nest(self, name: str, file: str) -> Iterator[Flaws]:
        """
        Collect the flaws of the template ``file`` inside the resource ``name``. An error raised inside ends the check
        of that template only, and counts if there is no other.
        """
        place, outer, inner = f"resources.{name}<{file}>", self.flaws, Flaws()
        self._names.append(name)
        self._places.append(f"{place}.")
        self.flaws = inner
        try:
            yield inner
        except RequestLimitExceeded:
            raise
        except StokerError as error:
            if not inner:
                inner.add(Flaw(error.message, (), type(error)))
        finally:
            self.flaws = outer
            self._names.pop()
            self._places.pop()
            for flaw in inner:
                outer.add(flaw.within(place, ("resources", name)))
