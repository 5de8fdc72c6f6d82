"""Projects, users, roles and tokens, as Keystone has them."""
