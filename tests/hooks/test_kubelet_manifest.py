"""The manifest of the hook kubelet, which a kubelet may read at any time."""

from __future__ import annotations

import json

import pytest

GROUP = "kubelet"


@pytest.fixture
def manifests(hook, tmp_path):
    hook.tool("docker", "#!/bin/sh\n")
    folder = tmp_path / "manifests"
    hook.environment["HEAT_KUBELET_MANIFESTS"] = str(folder)
    return folder


def test_a_manifest_is_replaced_in_one_step(hook, manifests):
    entry = hook.entry({"containers": []})
    assert hook.run(entry).changed is True
    (manifest,) = manifests.iterdir()
    assert manifest.stat().st_mode & 0o777 == 0o600
    manifest.write_text(old := '{"containers": [1]}')
    with manifest.open() as reader:
        assert hook.run(entry).changed is True
        assert reader.read() == old, "a reader has the whole former manifest"
    assert json.loads(manifest.read_text()) == {"containers": []}
    assert list(manifests.iterdir()) == [manifest]
