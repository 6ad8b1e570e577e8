"""docker-compose.yml as it stands: it cannot be run everywhere, but what it says can be checked."""

import re
from typing import Any

import pytest
from ruamel.yaml import YAML

from shared.runtime.settings import Settings
from stack.roles import role_of
from stack.services import CONSOLE, PREPARATIONS, SERVICES
from tests.support.monitoring import DASHBOARDS
from tests.support.services import ROOT

TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE = YAML(typ="safe").load(TEXT)
PARTS: dict[str, dict[str, Any]] = COMPOSE["services"]
IMAGE = "duebell:local"
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def modules() -> dict[str, str]:
    return {name: part["command"][2] for name, part in PARTS.items() if part.get("command", [""])[0] == "python"}


def test_it_starts_what_the_local_stack_starts() -> None:
    expected = {**{name: name for name in SERVICES}, CONSOLE: CONSOLE, **PREPARATIONS, "receiver": "examples.receiver"}
    assert modules() == expected


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_confined_watched_and_given_time_to_stop(service: str) -> None:
    part = PARTS[service]
    assert part["read_only"]
    assert part["cap_drop"] == ["ALL"]
    # With "=": docker's daemon warns of ":" as deprecated.
    assert part["security_opt"] == ["no-new-privileges=true"]
    assert part["restart"] == "unless-stopped"
    assert part["healthcheck"]["test"] == ["CMD", "python", "-m", "shared.ready"]
    assert int(part["stop_grace_period"].rstrip("s")) > Settings.model_fields["shutdown_grace_seconds"].default
    assert "ports" not in part, "replicas would collide"
    assert "container_name" not in part, "replicas would collide"


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_comes_with_its_own_users_after_the_preparations(service: str) -> None:
    part = PARTS[service]
    for address in (part["environment"]["DATABASE_URL"], part["environment"]["AMQP_URL"]):
        assert f"//{role_of(service)}:${{{service.upper()}_PASSWORD:?" in address
    assert part["depends_on"] == {name: {"condition": "service_completed_successfully"} for name in PREPARATIONS}
    assert PARTS["migrate"]["depends_on"] == {"roles": {"condition": "service_completed_successfully"}}


def test_what_is_published_is_published_on_this_machine_only() -> None:
    published = {name: part["ports"] for name, part in PARTS.items() if "ports" in part}
    assert published.keys() == {"postgres", "rabbitmq", "console", "receiver", "prometheus", "grafana"}
    variables = []
    for port in (port for ports in published.values() for port in ports):
        parts = re.fullmatch(r"127[.]0[.]0[.]1:\$\{([A-Z_]+_PORT):-(\d+)\}:(\d+)", port)
        assert parts, port
        assert parts[2] == parts[3], "by default a port is that of the service"
        variables.append(f"{parts[1]}={parts[2]}")
    example = re.findall(r"^# ([A-Z_]+_PORT=\d+)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert sorted(variables) == sorted(example)


def test_one_service_builds_the_image_and_the_others_use_it() -> None:
    """If several build it, the first `up --build` fails as they collide over its tag, and each `up` recreates all."""
    assert [name for name, part in PARTS.items() if "build" in part] == ["migrate"]
    with_it = {name: part for name, part in PARTS.items() if part["image"] == IMAGE}
    assert with_it.keys() == {*SERVICES, CONSOLE, *PREPARATIONS, "receiver", "cli"}
    assert [name for name, part in with_it.items() if part.get("pull_policy") != "never"] == ["migrate"]


def test_the_command_line_runs_as_the_operator_and_only_when_it_is_asked_for() -> None:
    part = PARTS["cli"]
    assert part["entrypoint"] == ["duebell"]
    assert part["profiles"] == ["cli"]
    assert part["restart"] == "no"
    assert part["environment"] == PARTS["migrate"]["environment"]
    assert "depends_on" not in part


def test_postgres_is_healthy_only_when_it_listens_where_clients_connect() -> None:
    """The server that sets the database up at the first start listens on the socket alone, and then goes."""
    check = PARTS["postgres"]["healthcheck"]["test"]
    assert check[check.index("-h") + 1] == "127.0.0.1"


@pytest.mark.parametrize("store", ["postgres", "rabbitmq"])
def test_a_store_that_starts_slowly_does_not_end_the_first_start_of_all(store: str) -> None:
    """An unhealthy one does: what waits for it is never started. Checks that fail in the start period do not count."""
    assert int(PARTS[store]["healthcheck"]["start_period"].rstrip("s")) >= 120


def test_no_argument_of_a_health_check_has_a_space() -> None:
    """podman's API splits arguments at spaces."""
    checks = [part["healthcheck"]["test"] for part in PARTS.values() if "healthcheck" in part]
    assert len(checks) > 5
    assert [argument for check in checks for argument in check if " " in argument] == []


def test_no_run_of_a_step_leaves_a_volume_behind() -> None:
    """The image of Postgres declares a volume."""
    assert PARTS["roles"]["tmpfs"] == ["/var/lib/postgresql"]


@pytest.mark.parametrize("service", SERVICES)
def test_prometheus_is_let_in_where_loopback_is_the_default(service: str) -> None:
    assert Settings.model_fields["metrics_host"].default == "127.0.0.1"
    assert PARTS[service]["environment"]["METRICS_HOST"] == "0.0.0.0"


def test_images_are_pinned() -> None:
    images = {part["image"] for part in PARTS.values()} - {IMAGE}
    images |= set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    for image in images:
        assert re.search(r":v?\d+\.\d+", image), image
        assert image.startswith("postgres:") or re.search(r":v?\d+\.\d+\.\d+", image), image


def test_the_image_has_every_package_and_no_root() -> None:
    needed = {module.split(".")[0] for module in modules().values()}
    assert needed <= set(re.findall(r"^COPY (\w+) \w+$", DOCKERFILE, re.MULTILINE))
    allowed = set((ROOT / ".dockerignore").read_text().split())
    assert {f"!{package}" for package in needed} <= allowed
    assert "chmod -R a+rX /app" in DOCKERFILE, "a checkout may be readable by its owner alone"
    [user] = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert int(user) > 0


def test_every_secret_is_in_the_example_and_nothing_else() -> None:
    example = re.findall(r"^([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert sorted(set(re.findall(r"\$\{(\w+):\?", TEXT))) == sorted(example)
    assert not re.search(r"PASSWORD: (?!\$\{)", TEXT)


def test_every_file_that_is_mounted_is_there() -> None:
    mounted = [volume.split(":")[0] for part in PARTS.values() for volume in part.get("volumes", [])]
    for path in mounted:
        if path.startswith("./"):
            assert (ROOT / path).exists(), path
        else:
            assert path in COMPOSE["volumes"], path


def test_prometheus_and_grafana_look_where_things_are() -> None:
    scraped = YAML(typ="safe").load(ROOT / "deploy/prometheus/prometheus.yml")["scrape_configs"]
    for job in scraped:
        [found] = job["dns_sd_configs"]
        [name] = found["names"]
        assert name in PARTS
        assert found["port"] == (15692 if name == "rabbitmq" else int(PARTS[name]["environment"]["METRICS_PORT"]))
    assert "rabbitmq_prometheus" in (ROOT / "deploy/rabbitmq/enabled_plugins").read_text()
    source = YAML(typ="safe").load(ROOT / "grafana/provisioning/datasources/prometheus.yml")["datasources"][0]
    assert source["url"] == "http://prometheus:9090"
    provider = YAML(typ="safe").load(ROOT / "grafana/provisioning/dashboards/duebell.yml")["providers"][0]
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in PARTS["grafana"]["volumes"]
    home = PARTS["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{provider['options']['path']}/duebell-overview.json"
    assert "duebell-overview" in DASHBOARDS


def test_delivery_may_call_the_receiver_and_no_other_private_address() -> None:
    [network] = COMPOSE["networks"]["webhooks"]["ipam"]["config"]
    for service in ("consumer", "delivery"):
        assert PARTS[service]["environment"]["WEBHOOK_ALLOW_NETWORKS"].endswith(f":-{network['subnet']}}}"), service
    on_it = [name for name, part in PARTS.items() if "webhooks" in part.get("networks", [])]
    assert on_it == ["delivery", "receiver"]
    assert COMPOSE["networks"].keys() == {"default", "webhooks"}, "podman-compose wants the default network declared"
