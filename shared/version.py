"""The release, as a webhook receiver sees it in User-Agent. Kept equal to pyproject.toml by a test."""

VERSION = "0.1.0"
