"""What a resource type is: its interface, its schema, and the services that it uses. ``types`` has the types."""
