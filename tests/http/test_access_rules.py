"""Access rules stand in the tables of routes and actions: no handler decides by roles, or refuses a caller itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HTTP = Path(__file__).parents[2] / "server" / "src" / "stoker" / "http"
#: What a principal may do. Names and projects are data, which handlers may use.
RIGHTS = {"roles", "site_admin", "restricted", "application_credential_id", "resource_id"}
#: Modules outside ``access.py``, and what they need rights or refusals for.
EXCEPTIONS = {
    "request.py": "applies the limits that an access rule has set",
    "cfn/serialize.py": "the HTTP status of the error",
    "stoker/artifacts.py": "the body and the artifact say whether it belongs to the site",
    "console/pages.py": "an application credential signs nobody in to the console, and the error says what does",
    "heat/configs.py": "no role permits a list over all projects",
    "application.py": "adds refusals by the rules to the audit log",
    "identity/auth.py": "the token in the header says whose it is",
    "audit_trail.py": "agents leave no entries",
}


def decisions(tree: ast.Module) -> Iterator[str]:
    """Expressions that read a principal's rights or refuse a caller."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=owner, attr=name) if name in RIGHTS:
                if re.search(r"\b(principal|user|requester)$", ast.unparse(owner)):
                    yield ast.unparse(node)
            case ast.Name(id="Forbidden" | "with_implied_roles" as name):
                yield name


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in HTTP.rglob("*.py"):
        if path.name != "access.py":
            yield str(path.relative_to(HTTP)), ast.parse(path.read_text())


def test_no_handler_decides_who_may_call_it():
    found = {name: set(decisions(tree)) for name, tree in modules()}
    assert len(found) > 60
    assert {name: what for name, what in found.items() if what and name not in EXCEPTIONS} == {}
    assert {name for name in EXCEPTIONS if not found[name]} == set(), "an exception without a reason is left over"


def test_a_handler_that_reads_roles_is_detected():
    wrong = """
def index(request):
    if "admin" not in request.user.roles and not request.principal.site_admin:
        raise Forbidden("no")
"""
    assert set(decisions(ast.parse(wrong))) == {"request.user.roles", "request.principal.site_admin", "Forbidden"}


def test_only_the_frame_opens_transactions():
    texts = {str(path.relative_to(HTTP)): path.read_text() for path in HTTP.glob("*/*.py")}
    found = {name for name, text in texts.items() if re.search(r"app\.store\.(read|write)\(", text)}
    assert {name for name in found if not name.endswith("/access.py")} == set()
