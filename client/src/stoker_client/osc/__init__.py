"""Commands of the `openstack` client for Stoker's extensions of Heat's API (extra ``stoker[osc]``)."""
