"""The check of the internals of libraries that `stoker serve` makes before it starts."""

from __future__ import annotations

import pytest

from stoker.commands import serve
from stoker.model.errors import Unavailable


def test_the_installed_libraries_have_every_internal():
    serve.check_internals()


@pytest.mark.parametrize(
    "name", ["uvicorn.protocols.http.httptools_impl.Gone", "uvicorn.protocols.http.moved.Name", "uvicorn.Server.gone"]
)
def test_a_missing_internal_is_named_with_the_remedy(monkeypatch, name):
    module, _, attribute = name.rpartition(".") if "Server" not in name else ("uvicorn", ".", "Server.gone")
    monkeypatch.setattr(serve, "INTERNALS", {module: (attribute,)})
    with pytest.raises(Unavailable, match=rf"does not work with uvicorn \d.*: {name} is missing; .*constraints.txt"):
        serve.check_internals()
