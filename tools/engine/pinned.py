"""The images that docker-compose.yml and the Dockerfile pin: the one place where they are read."""

import re
from functools import cache

from ruamel.yaml import YAML

from tools.engine.layout import PROJECT

COMPOSE_FILE = PROJECT / "docker-compose.yml"
OWN_IMAGE = "duebell:local"


@cache
def pinned_images() -> dict[str, str]:
    """Return each image by its repository's last part: postgres, rabbitmq, prometheus, grafana, python."""
    services = YAML(typ="safe").load(COMPOSE_FILE)["services"]
    images = {service["image"] for service in services.values()} - {OWN_IMAGE}
    images |= set(re.findall(r"^FROM (\S+)", (PROJECT / "Dockerfile").read_text(), re.MULTILINE))
    by_name = {image.partition(":")[0].rpartition("/")[2]: image for image in images}
    if len(by_name) != len(images):
        raise ValueError(f"one image is pinned to two versions: {sorted(images)}")
    return by_name
