"""The provider of OpenStack: resource types, and the work that they require at a cloud."""
