"""Where the engine and its data are. All of it is below one directory, which may be deleted while no engine runs."""

from pathlib import Path

from stack.directory import STACK

PROJECT = Path(__file__).parents[2]
ENGINE = STACK / "engine"
ENGINE_ROOT = ENGINE / "root"  # the unpacked packages
BASES = ENGINE / "bases"  # systems that stand-in images are made from
DATA = ENGINE / "data"  # images and containers
# In the checkout, which has the same path inside of the engine's root and outside of it.
SOCKET = ENGINE / "run/docker.sock"
# The control groups of containers are below one, so that what a killed engine left can be told from all others.
CGROUPS, CGROUP = Path("/sys/fs/cgroup"), "duebell-engine"

# The current release of Docker is in Debian testing.
RELEASE = "testing"
ENGINE_PACKAGES = (
    "containerd", "debootstrap", "docker-buildx", "docker-cli", "docker-compose", "docker.io", "iproute2", "iptables",
    "runc", "slirp4netns", "tini",
)  # fmt: skip
