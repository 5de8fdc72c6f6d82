"""The web console: its pages and files, and the session of a browser, with which the pages call the REST API."""
