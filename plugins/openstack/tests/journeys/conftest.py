from journeys.conftest import stoker  # noqa: F401 — a fixture of the journeys of the server
