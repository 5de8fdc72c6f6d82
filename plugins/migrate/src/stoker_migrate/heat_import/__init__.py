"""Takes a stack over from another Heat: reads it through Heat's API, and describes it for Stoker to adopt."""
