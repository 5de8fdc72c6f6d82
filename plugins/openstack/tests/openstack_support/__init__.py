"""What tests of the provider share."""
