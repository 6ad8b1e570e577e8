"""The version of this release: in the package's metadata, in `duebell --version`, and in the User-Agent of webhooks."""

VERSION = "0.1.0"
