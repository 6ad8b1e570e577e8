"""The files of deploy/kubernetes are valid, and in step with the code. These tests need no kubectl."""

import re
from ipaddress import ip_network

import kubernetes_validate
import pytest

from console.settings import ConsoleSettings
from consumer.settings import ConsumerSettings
from delivery.settings import DeliverySettings
from producer.settings import ProducerSettings
from shared.contract.address_rules import NOT_PUBLIC_4, NOT_PUBLIC_6, PUBLIC_6
from shared.contract.names import Names
from shared.runtime.settings import Settings
from shared.version import VERSION
from stack.roles import CONSOLE_USER
from stack.services import CONSOLE, SERVICES
from tests.kubernetes.files import KUBERNETES, Manifest, files, of_kind, pods, read
from tests.support.services import ROOT
from tools.kubernetes.rules import RULES, rendered, with_kubectl

# The oldest version that docs/operations/kubernetes.md promises, and the newest whose schemas are at hand.
VERSIONS = ("1.27", "1.37")
# Of operators that a cluster may have: Kubernetes' own schemas do not know them.
CUSTOM = {"ServiceMonitor", "PrometheusRule", "ScaledObject", "TriggerAuthentication"}
SETTINGS: dict[str, type[Settings]] = {
    "consumer": ConsumerSettings,
    "producer": ProducerSettings,
    "delivery": DeliverySettings,
    "console": ConsoleSettings,
}
MANIFESTS = [one for file in files() for one in read(file.read_text())]
DEPLOYMENTS = of_kind(MANIFESTS, "Deployment")
SERVICE_PODS = pods(MANIFESTS, "Deployment")
ALL_PODS = {**SERVICE_PODS, **pods(MANIFESTS, "Job")}
LABELS = {name: one["spec"]["template"]["metadata"]["labels"] for name, one in DEPLOYMENTS.items()}
[KUSTOMIZATION] = read((KUBERNETES / "base" / "kustomization.yaml").read_text())
[COMMON] = KUSTOMIZATION["configMapGenerator"]
COMMON_VARIABLES = dict(line.split("=", 1) for line in COMMON["literals"])


def name_of(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", [one for one in MANIFESTS if one["kind"] not in CUSTOM], ids=name_of)
def test_a_manifest_is_valid(manifest: Manifest, version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_a_misspelt_field_would_be_found() -> None:
    job = of_kind(MANIFESTS, "Job")[f"duebell-migrate-{VERSION}"]
    wrong = {**job, "spec": {**job["spec"], "backofLimit": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_pods_run_as_the_user_of_the_image() -> None:
    [user] = re.findall(r"^USER (\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {pod["securityContext"]["runAsUser"] for pod in ALL_PODS.values()} == {int(user)}


@pytest.mark.parametrize("pod", ALL_PODS.values(), ids=ALL_PODS.keys())
def test_a_container_is_confined_and_says_what_it_needs(pod: Manifest) -> None:
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    [container] = pod["containers"]
    assert container["image"] == "duebell"
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} <= set(container["resources"]["requests"])
    assert "memory" in container["resources"]["limits"]


def test_every_service_has_a_deployment() -> None:
    assert set(DEPLOYMENTS) == {f"duebell-{name}" for name in (*SERVICES, CONSOLE)}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_service_has_probes_and_time_to_stop_and_is_spread(name: str) -> None:
    pod = SERVICE_PODS[f"duebell-{name}"]
    [container] = pod["containers"]
    assert container["command"] == ["python", "-m", name]
    assert pod["terminationGracePeriodSeconds"] > Settings.model_fields["shutdown_grace_seconds"].default
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["metrics"] == int(COMMON_VARIABLES["METRICS_PORT"])
    if name == CONSOLE:
        assert ports["pages"] == ConsoleSettings.model_fields["console_port"].default
    [spread] = pod["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"].items() <= LABELS[f"duebell-{name}"].items()


@pytest.mark.parametrize("name", SETTINGS)
def test_every_variable_is_a_setting_and_addresses_are_secrets(name: str) -> None:
    [container] = SERVICE_PODS[f"duebell-{name}"]["containers"]
    named = {*COMMON_VARIABLES, *(variable["name"] for variable in container.get("env", ()))}
    assert {variable.lower() for variable in named} <= set(SETTINGS[name].model_fields)
    sources = [next(iter(source.values()))["name"] for source in container["envFrom"]]
    assert sources == [COMMON["name"], f"duebell-{name}"]
    assert not of_kind(MANIFESTS, "Secret"), "no secret is in the repository"


def test_the_consumers_take_commands_of_the_console() -> None:
    [container] = SERVICE_PODS["duebell-consumer"]["containers"]
    assert {"name": "OPERATOR_USERS", "value": CONSOLE_USER} in container["env"]


def test_the_jobs_of_each_release_have_names_of_their_own_and_run_what_prepares_the_stores() -> None:
    commands = {name: pod["containers"][0]["command"] for name, pod in pods(MANIFESTS, "Job").items()}
    assert commands == {
        f"duebell-migrate-{VERSION}": ["python", "-m", "shared.migrate"],
        f"duebell-topology-{VERSION}": ["python", "-m", "shared.topology"],
    }
    assert KUSTOMIZATION["images"] == [{"name": "duebell", "newTag": VERSION}]


def test_selectors_find_the_pods_that_they_are_for() -> None:
    for name, budget in of_kind(MANIFESTS, "PodDisruptionBudget").items():
        assert budget["spec"]["selector"]["matchLabels"].items() <= LABELS[name].items()
        # While a store is away no pod is ready, and every drain of a node would wait for it.
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    services = of_kind(MANIFESTS, "Service")
    metrics = services["duebell-metrics"]["spec"]["selector"].items()
    assert all(metrics <= of_pod.items() for of_pod in LABELS.values())
    assert services["duebell-console"]["spec"]["selector"].items() <= LABELS["duebell-console"].items()
    policies = of_kind(MANIFESTS, "NetworkPolicy")
    ingress = policies["duebell-ingress"]["spec"]["podSelector"]["matchLabels"].items()
    assert all(ingress <= of_pod.items() for of_pod in LABELS.values())
    egress = policies["duebell-delivery-egress"]["spec"]["podSelector"]["matchLabels"].items()
    assert [name for name, of_pod in LABELS.items() if egress <= of_pod.items()] == ["duebell-delivery"]


def test_the_network_lets_delivery_reach_what_its_own_guard_does() -> None:
    policy = of_kind(MANIFESTS, "NetworkPolicy")["duebell-delivery-egress"]
    blocks = [peer["ipBlock"] for rule in policy["spec"]["egress"] for peer in rule.get("to", ())]
    assert {ip_network(one["cidr"]): {ip_network(hole) for hole in one["except"]} for one in blocks} == {
        ip_network("0.0.0.0/0"): set(NOT_PUBLIC_4),
        PUBLIC_6: set(NOT_PUBLIC_6),
    }


def test_scalers_know_the_deployments_and_the_queues() -> None:
    scalers = [one for one in MANIFESTS if one["kind"] in {"HorizontalPodAutoscaler", "ScaledObject"}]
    assert {one["spec"]["scaleTargetRef"]["name"] for one in scalers} <= DEPLOYMENTS.keys()
    assert all(one["metadata"]["name"] == one["spec"]["scaleTargetRef"]["name"] for one in scalers)
    queues = {
        name: trigger["metadata"]["queueName"]
        for name, one in of_kind(MANIFESTS, "ScaledObject").items()
        for trigger in one["spec"]["triggers"]
    }
    assert queues == {"duebell-consumer": Names().inbox, "duebell-delivery": Names().deliveries}


def test_the_alerts_are_those_of_the_project() -> None:
    assert RULES.read_text() == rendered(), "run `make kubernetes`"


def test_an_alerts_next_step_is_a_command_for_pods() -> None:
    assert "docker" not in rendered()
    assert with_kubectl("docker compose logs --tail 50 {{ $labels.job }} | grep x") == (
        "kubectl logs --selector app.kubernetes.io/name=duebell-{{ $labels.job }} --tail 50 | grep x"
    )
    assert with_kubectl("docker compose logs producer") == (
        "kubectl logs --selector app.kubernetes.io/name=duebell-producer --tail -1"
    )


def test_the_page_shows_the_version_of_this_release() -> None:
    page = (ROOT / "docs/operations/kubernetes.md").read_text()
    assert f"duebell:{VERSION}" in page
