"""The alerts of deploy/prometheus/alerts.yml as a PrometheusRule. Pure, but for reading that file."""

import re
from pathlib import Path
from textwrap import indent

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
RULES = DEPLOY / "kubernetes" / "monitoring" / "rules.yaml"

_HEAD = """\
# Written by `make kubernetes` from deploy/prometheus/alerts.yml: change that file.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: duebell
spec:
"""
_COMPOSE_LOGS = re.compile(r"docker compose logs(?: --tail (?P<lines>\d+))? (?P<service>\{\{.*?\}\}|\w+)")


def rendered() -> str:
    """Return the text of the object."""
    groups = ALERTS.read_text().partition("groups:")[2]
    return f"{_HEAD}  groups:{indent(with_kubectl(groups), '  ')}"


def with_kubectl(text: str) -> str:
    """Replace the commands that show logs of docker-compose.yml by those for pods."""
    return _COMPOSE_LOGS.sub(_kubectl_logs, text)


def _kubectl_logs(found: re.Match[str]) -> str:
    # Without --tail, kubectl shows ten lines of each pod that a selector finds.
    lines = found["lines"] or "-1"
    return f"kubectl logs --selector app.kubernetes.io/name=duebell-{found['service']} --tail {lines}"
