"""The resource types of the provider; see ``stoker.resources``."""
