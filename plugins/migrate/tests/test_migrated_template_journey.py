"""The example of the page about migration: the new template is the page's, and real agents carry it out."""

from __future__ import annotations

import re
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.agents import enrolled_agent
from support.server import served

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "docs" / "migrate-from-heat.md"


def test_the_migrated_template_of_the_page_completes_on_enrolled_servers(tmp_path, database_url):
    blocks = re.findall(r"(?:^    .*\n|^\n)+", PAGE.read_text(), re.MULTILINE)
    texts = [textwrap.dedent(block).strip("\n") + "\n" for block in blocks if "heat_template_version" in block]
    original, nested, migrated = texts
    tmp_path.joinpath("app.yaml").write_text(original)
    tmp_path.joinpath("database.yaml").write_text(nested)
    output = tmp_path / "stoker" / "app.yaml"
    output.parent.mkdir()
    with ExitStack() as cleanup:
        stoker = cleanup.enter_context(served(tmp_path, database=database_url))
        stoker.run("template", "migrate", str(tmp_path / "app.yaml"), "--output-file", str(output))
        assert output.read_text() == migrated
        shown = stoker.json("template", "validate", "-t", str(output))
        assert set(shown["Parameters"]) == {"db_server_server", "title"}
        for name in ("web1", "db1"):
            cleanup.enter_context(enrolled_agent(tmp_path / name, stoker, name))
        stoker.run("stack", "create", "app", "-t", str(output), "-P", "db_server_server=db1", "--wait")
        outputs = {output["output_key"]: output["output_value"] for output in stoker.json("stack", "outputs", "app")}

    assert outputs["page"].strip() == "prepared Shop ready"
    assert outputs["address"]
