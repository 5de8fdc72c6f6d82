"""What of Keystone's API there is, described."""
