"""The commands of docs/operations/kubernetes.md, as far as they can be followed without a cluster."""

import re
import subprocess
from pathlib import Path

import pytest

from console.settings import ConsoleSettings
from shared.version import VERSION
from tests.documents.blocks import blocks_of
from tests.kubernetes.files import KUBERNETES, RUN_SECONDS, Manifest, build, files, find_kubectl, of_kind, pods, read
from tests.support.services import ROOT

pytestmark = pytest.mark.skipif(
    find_kubectl() is None,
    reason="kubectl is missing or old: `sh stack/setup.sh kubectl` fetches it, and `make test` does",
)

PAGE = "docs/operations/kubernetes.md"
[COMMANDS] = [block.text for block in blocks_of(PAGE) if "create secret" in block.text]
SECRET = r"(?:secretRef: {name|secretName|secretTargetRef:\n +- {parameter: host, name): ([a-z-]+)"
# Prints what would be created and applied, and asks no cluster.
DRY_KUBECTL = """#!/bin/sh
case "$*" in
*" create "*) {kubectl} "$@" --dry-run=client --output=yaml ;;
"apply -k "*) {kubectl} kustomize "$3" ;;
*) echo "unknown: $*" >&2; exit 1 ;;
esac
echo ---
"""


@pytest.fixture
def created(tmp_path: Path) -> list[Manifest]:
    """What the page creates and applies."""
    program = tmp_path / "kubectl"
    program.write_text(DRY_KUBECTL.format(kubectl=find_kubectl()))
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["/bin/bash", "-e", "-c", COMMANDS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return read(done.stdout)


def test_the_secrets_of_the_page_have_what_the_pods_read(created: list[Manifest]) -> None:
    secrets = {name: set(secret["data"]) for name, secret in of_kind(created, "Secret").items()}
    addresses = {"DATABASE_URL", "AMQP_URL"}
    assert secrets["duebell-operator"] == addresses
    assert addresses < secrets["duebell-console"] <= {name.upper() for name in ConsoleSettings.model_fields}
    [container] = pods(created, "Deployment")["duebell-delivery"]["containers"]
    [file] = [variable["value"] for variable in container["env"] if variable["name"] == "WEBHOOK_SECRETS_FILE"]
    assert secrets["duebell-webhook-secrets"] == {Path(file).name}


def test_every_secret_that_a_manifest_needs_is_on_the_page() -> None:
    needed = {name for file in files() for name in re.findall(SECRET, file.read_text())}
    assert {"duebell-operator", "duebell-consumer", "duebell-webhook-secrets", "duebell-reader"} <= needed
    page = (ROOT / PAGE).read_text()
    assert [name for name in sorted(needed) if name not in page] == []


def test_the_first_step_of_an_upgrade_leaves_all_services_but_the_producers_as_they_are() -> None:
    [left_out] = re.findall(r"--selector 'app\.kubernetes\.io/name notin \((.+)\)'", (ROOT / PAGE).read_text())
    names = left_out.split(", ")
    first = [
        one
        for one in build(KUBERNETES / "overlays" / "production")
        if one["metadata"]["labels"].get("app.kubernetes.io/name") not in names
    ]
    assert set(of_kind(first, "Deployment")) == {"duebell-producer"}
    assert set(of_kind(first, "Job")) == {f"duebell-migrate-{VERSION}", f"duebell-topology-{VERSION}"}
    assert {"duebell-settings"} == {
        name.rpartition("-")[0] for name in of_kind(first, "ConfigMap") if "settings" in name
    }
