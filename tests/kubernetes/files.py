"""The manifests of deploy/kubernetes: as the files have them, and as `kubectl apply -k` would send them."""

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from stack.directory import STACK
from tests.support.services import ROOT

KUBERNETES = ROOT / "deploy" / "kubernetes"
# Where stack/setup.sh puts a kubectl if the machine has none, or an old one.
BROUGHT = STACK / "kubectl" / "kubectl"
OLDEST_MINOR = 27
RUN_SECONDS = 60

Manifest = dict[str, Any]


def read(text: str) -> list[Manifest]:
    return [one for one in YAML(typ="safe").load_all(text) if one is not None]


def files() -> list[Path]:
    """Every file with manifests. Kustomizations are instructions to kubectl, and never sent."""
    return sorted(file for file in KUBERNETES.rglob("*.yaml") if file.name != "kustomization.yaml")


@cache
def find_kubectl() -> str | None:
    """Return a kubectl that knows all that the overlays use; that of Debian 12 does not."""
    found = str(BROUGHT) if BROUGHT.is_file() else shutil.which("kubectl")
    if found is None:
        return None
    said = json.loads(run(found, "version", "--client", "--output", "json").stdout)["clientVersion"]["gitVersion"]
    release = re.match(r"v1\.(\d+)\.", said)
    return found if release and int(release[1]) >= OLDEST_MINOR else None


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)


@cache
def build(directory: Path) -> list[Manifest]:
    """Build the overlay. One that cannot be built fails the test, with kubectl's own words."""
    kubectl = find_kubectl()
    assert kubectl is not None
    built = run(kubectl, "kustomize", str(directory))
    assert built.returncode == 0, built.stderr
    assert "deprecated" not in built.stderr
    return read(built.stdout)


def of_kind(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    return {one["metadata"]["name"]: one for one in manifests if one["kind"] == kind}


def pods(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    """Return the pods' specifications of all Deployments or Jobs, by name."""
    return {name: one["spec"]["template"]["spec"] for name, one in of_kind(manifests, kind).items()}
