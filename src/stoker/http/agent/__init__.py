"""Our own agents' protocol: enrol, poll the document, report runs."""
