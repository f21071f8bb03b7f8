"""The version of the library."""

__version__ = "0.2.0"
