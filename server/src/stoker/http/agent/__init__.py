"""The API for Stoker's own agents: enroll, poll the document, report runs."""
