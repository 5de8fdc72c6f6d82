"""Projects, users, roles and tokens, modelled on Keystone."""
