"""A container engine for a machine without one: Docker from Debian's packages, unpacked and not installed."""
