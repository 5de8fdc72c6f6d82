"""Swift's API over the object store's room."""
