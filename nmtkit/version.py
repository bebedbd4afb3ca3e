"""The version of nmtkit, stored in every folder that it writes."""

__version__ = "0.1.0"
