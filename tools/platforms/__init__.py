"""`make platforms`: the README's commands on each release of Debian that is supported, from the same lock files."""
