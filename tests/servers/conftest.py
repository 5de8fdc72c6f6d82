from __future__ import annotations

import pytest

from stoker.servers.keys import Keys
from stoker.store.open import Store


@pytest.fixture
def keys(store: Store) -> Keys:
    return Keys(store, b"the site's secret")
