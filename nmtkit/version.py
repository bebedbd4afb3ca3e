"""The version of the toolkit, which every folder that it writes names."""

__version__ = "0.1.0"
