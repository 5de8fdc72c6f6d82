"""
Authentication by an external Keystone in place of Stoker's own users (``identity_mode = keystone``).

Other modes import nothing of this package, because keystoneauth1 is an optional dependency.
"""
