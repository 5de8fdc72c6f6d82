"""Software deployments: a config joined with a server."""
