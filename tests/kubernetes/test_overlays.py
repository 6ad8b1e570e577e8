"""deploy/kubernetes as `kubectl apply -k` would send it."""

import json
from pathlib import Path

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from shared.version import VERSION
from stack.services import CONSOLE, SERVICES
from tests.documents.blocks import blocks_of
from tests.kubernetes.files import KUBERNETES, Manifest, build, find_kubectl, of_kind, pods
from tests.kubernetes.test_files import CUSTOM, VERSIONS
from tests.support.services import ROOT
from tools.kubernetes.rules import RULES

pytestmark = pytest.mark.skipif(
    find_kubectl() is None,
    reason="kubectl is missing or old: `sh stack/setup.sh kubectl` fetches it, and `make test` does",
)

BASE = KUBERNETES / "base"
OVERLAYS = sorted((KUBERNETES / "overlays").iterdir())
# `kubectl apply` keeps a copy of each object in an annotation, and this is how long all annotations may be.
MAX_APPLIED_BYTES = 262_144


@pytest.fixture(params=[BASE, *OVERLAYS], ids=lambda directory: directory.name)
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    return build(Path(request.param))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid_and_can_be_applied(manifests: list[Manifest], version: str) -> None:
    known = [one for one in manifests if one["kind"] not in CUSTOM]
    assert len(known) > 10
    for manifest in known:
        kubernetes_validate.validate(manifest, version, strict=True)
    assert max(len(json.dumps(one)) for one in manifests) < MAX_APPLIED_BYTES


def test_every_object_has_one_name_and_says_whose_it_is(manifests: list[Manifest]) -> None:
    names = [(one["kind"], one["metadata"]["name"]) for one in manifests]
    assert len(set(names)) == len(names)
    for manifest in manifests:
        assert manifest["metadata"]["labels"]["app.kubernetes.io/part-of"] == "duebell"


def test_every_container_has_this_release_and_settings_that_are_there(manifests: list[Manifest]) -> None:
    every = {**pods(manifests, "Deployment"), **pods(manifests, "Job")}
    assert len(every) == len((*SERVICES, CONSOLE)) + 2
    settings = of_kind(manifests, "ConfigMap")
    for pod in every.values():
        [container] = pod["containers"]
        assert container["image"].endswith(f"duebell:{VERSION}")
        references = [source["configMapRef"]["name"] for source in container["envFrom"] if "configMapRef" in source]
        assert set(references) <= settings.keys()


def test_what_a_scaler_scales_names_no_number_of_replicas(manifests: list[Manifest]) -> None:
    scalers = [one for one in manifests if one["kind"] in {"HorizontalPodAutoscaler", "ScaledObject"}]
    scaled = {one["spec"]["scaleTargetRef"]["name"] for one in scalers}
    fixed = {name for name, one in of_kind(manifests, "Deployment").items() if "replicas" in one["spec"]}
    assert not scaled & fixed


def test_an_overlay_of_ones_own_changes_what_it_names(tmp_path: Path) -> None:
    """The one on the page about Kubernetes."""
    [block] = [each for each in blocks_of("docs/operations/kubernetes.md") if each.language == "yaml"]
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    (tmp_path / "duebell").mkdir()
    (tmp_path / "duebell" / "kustomization.yaml").write_text(block.text)
    built = build(tmp_path / "duebell")
    deployments = of_kind(built, "Deployment")
    assert deployments["duebell-producer"]["spec"]["replicas"] == 3
    [settings] = [one for name, one in of_kind(built, "ConfigMap").items() if name.startswith("duebell-settings-")]
    assert {"RETENTION_DAYS": "7", "METRICS_PORT": "9100"}.items() <= settings["data"].items()
    for pod in pods(built, "Deployment").values():
        [container] = pod["containers"]
        assert container["image"] == f"registry.shop.example/duebell:{VERSION}"
        assert container["envFrom"][0]["configMapRef"]["name"] == settings["metadata"]["name"]


def test_monitoring_has_the_alerts_and_every_dashboard() -> None:
    production = build(KUBERNETES / "overlays" / "production")
    [rules] = of_kind(production, "PrometheusRule").values()
    assert rules["spec"] == YAML(typ="safe").load(RULES.read_text())["spec"]
    maps = of_kind(production, "ConfigMap").values()
    [dashboards] = [one for one in maps if one["metadata"]["labels"].get("grafana_dashboard")]
    files = {file.name: json.loads(file.read_text()) for file in (ROOT / "grafana" / "dashboards").glob("*.json")}
    assert {name: json.loads(text) for name, text in dashboards["data"].items()} == files
