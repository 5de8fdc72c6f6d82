"""The `openstack` command's words for what Stoker adds to Heat's API (extra ``stoker[osc]``)."""
