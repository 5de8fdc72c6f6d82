"""Users, and the roles they have in projects."""
