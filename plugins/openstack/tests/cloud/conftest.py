from __future__ import annotations

from collections.abc import Iterator

import pytest

from openstack_support import fake_openstack
from openstack_support.cloud_sites import CloudSite, cloud_site
from openstack_support.fake_openstack import FakeOpenStack
from stoker.backends import reconciler
from stoker_openstack.cloud import client, controller, errors, polling, recorder
from stoker_openstack.cloud.drivers import base

#: The share of a pause that is left. The double answers at once, and tests would only wait.
_SHARE = 0.05


@pytest.fixture
def cloud() -> Iterator[FakeOpenStack]:
    """An OpenStack in memory."""
    with fake_openstack.running() as running:
        yield running


@pytest.fixture
def site(tmp_path, store, cloud, short_pauses) -> Iterator[CloudSite]:
    """A site with the provider at the OpenStack in memory."""
    with cloud_site(store, tmp_path, "fake", fake_openstack.clouds_yaml(tmp_path, cloud)) as running:
        yield running


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pauses between requests to the cloud; their proportions remain."""
    for module, name in (
        (client, "_SPARED"),
        (controller, "_LONGEST_PAUSE"),
        (polling, "_AWAY"),
        (polling, "_BUSY"),
        (polling, "_SHORTEST"),
        (polling, "_LONGEST"),
        (reconciler, "_LONGEST_AWAY"),
        (recorder, "FIRST_POLL"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name) * _SHARE)
    monkeypatch.setattr(base, "_SETTLING", base._SETTLING * _SHARE)
    monkeypatch.setattr(polling, "_USUAL_SECONDS", tuple(seconds * _SHARE for seconds in polling._USUAL_SECONDS))
    seconds = {kind: tuple(each * _SHARE for each in all) for kind, all in polling._SECONDS.items()}
    monkeypatch.setattr(polling, "_SECONDS", seconds)
    retry_later = errors.RetryLater.__init__

    def shorten(self: errors.RetryLater, message: str, seconds: float, *, is_rejected: bool = False) -> None:
        retry_later(self, message, seconds * _SHARE, is_rejected=is_rejected)

    monkeypatch.setattr(errors.RetryLater, "__init__", shorten)
