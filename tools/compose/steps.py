"""The steps of `make compose`, in the order in which they are run.

Each takes the project, and returns in a few words what was seen. A step that does not go as it should raises StepError.
"""

import asyncio
import json
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import httpx

from stack.demo import judge
from stack.journey import ONE_SHOT, Addresses, Journal, run_journey
from stack.processes import wait_until
from stack.services import CONSOLE, DEMO_SECRET, SERVICES
from tools.compose.errors import StepError
from tools.compose.load import JOBS, publish_jobs, wait_for_jobs
from tools.compose.project import CHANGE_ME, PORTS, Project, run_docker
from tools.engine.layout import ENGINE, ENGINE_ROOT
from tools.engine.pinned import OWN_IMAGE

COMPOSE_LOG = ENGINE / "run/logs/compose.log"
SCRAPED_SECONDS = 90.0
Step = Callable[[Project], str]


def start_from_nothing(project: Project) -> str:
    """Start the project without a container, volume, image of Duebell or layer of a build from before."""
    project.run("down", "--volumes", "--remove-orphans")
    run_docker(["docker", "image", "rm", "--force", OWN_IMAGE], COMPOSE_LOG, check=False)
    run_docker(["docker", "builder", "prune", "--all", "--force"], COMPOSE_LOG)
    began = time.monotonic()
    project.run("up", "--build", "--detach")
    built = time.monotonic()
    project.wait_until_healthy()
    services = sum(container.state == "running" for container in project.containers())
    return f"{services} services healthy, {time.monotonic() - built:.0f} s after `up` returned ({built - began:.0f} s)"


def look_at_confinement(project: Project) -> str:
    """Ask the kernel what the process of each service may do."""
    for service in (*SERVICES, CONSOLE):
        text = project.run("exec", "-T", service, "cat", "/proc/1/status")
        lines = [line.partition(":") for line in text.splitlines()]
        told = {name: rest.split()[0] for name, _, rest in lines if rest.strip()}
        seen = (told["Uid"], int(told["CapEff"], 16), int(told["CapBnd"], 16), told["NoNewPrivs"])
        if seen != ("10001", 0, 0, "1"):
            raise StepError(f"{service}: uid, CapEff, CapBnd, NoNewPrivs are {seen}")
    return "user 10001, no capabilities, no new privileges"


def ring(project: Project) -> str:
    """Take the journey of `make demo`, with its checks: a one-shot with a signed webhook, a rule, a cancel."""
    received = ENGINE / "run/receiver.log"
    follow = [*project.command, "logs", "--follow", "--no-log-prefix", "receiver"]
    journal = Journal(show=lambda _: None)
    with received.open("wb") as output, subprocess.Popen(follow, stdout=output, stderr=subprocess.DEVNULL) as following:
        try:
            hook = "http://receiver:8090/tea"
            addresses = Addresses(project.database_url, project.amqp_url, hook, DEMO_SECRET, received)
            asyncio.run(run_journey(addresses, journal))
        except TimeoutError:
            raise StepError("the jobs did not end in time") from None
        finally:
            following.kill()
    checks = judge(journal)
    if failed := [check.text for check in checks if not check.passed]:
        raise StepError(f"not so: {'; '.join(failed)}")
    return f"{len(checks)} checks: rings, rule, cancel, one webhook, `delivery.completed`"


def ask_for_the_status(project: Project) -> str:
    expect_services(project, 1)
    project.run("run", "--rm", "cli", "status")
    return "exit status 0, 1 of each service"


def look_at_the_console(_: Project) -> str:
    """Log in as the user of .env.example, and look for a job that has rung."""
    url = f"http://127.0.0.1:{PORTS['CONSOLE_PORT']}"
    with httpx.Client(base_url=url, headers={"Origin": url}, follow_redirects=True, timeout=10) as browser:
        if "password" not in browser.get("/schedules").text:
            raise StepError("the console shows its pages to users who have not logged in")
        browser.post("/log-in", data={"name": "admin", "password": CHANGE_ME, "to": "", "zone": "UTC"})
        page = browser.get("/schedules", params={"state": "done"})
    if page.status_code != 200 or f">{ONE_SHOT}<" not in page.text:
        raise StepError(f"its list of schedules says {page.status_code}, and has no {ONE_SHOT}")
    return "asks for a password, then lists the job that rang"


def scale(project: Project) -> str:
    """Double the services. The containers that run stay the same, and are not started again."""
    before = _starts(project)
    project.up(*(part for service in SERVICES for part in ("--scale", f"{service}=2")))
    after = _starts(project)
    if touched := [name for name, started in before.items() if after.get(name) != started]:
        raise StepError(f"containers were recreated or restarted: {touched}")
    expect_services(project, 2)
    return f"{len(after) - len(before)} containers new, 0 recreated or restarted; 2 of each service"


def look_at_prometheus(_: Project) -> str:
    """Check that every replica is found by its name and scraped, and that the rules of the alerts are loaded."""
    expected = {**dict.fromkeys(SERVICES, 2), "rabbitmq": 1, "rabbitmq-queues": 1}
    seen: Counter[str] = Counter()

    def all_are_up() -> bool:
        nonlocal seen
        targets = _ask_prometheus("targets")["activeTargets"]
        seen = Counter(target["labels"]["job"] for target in targets if target["health"] == "up")
        return all(seen[name] >= count for name, count in expected.items())

    if not wait_until(all_are_up, SCRAPED_SECONDS):
        raise StepError(f"targets up: {dict(seen)}, expected {expected}")
    rules = [rule for group in _ask_prometheus("rules")["groups"] for rule in group["rules"]]
    if ill := [rule["name"] for rule in rules if rule["health"] not in {"ok", "unknown"}]:
        raise StepError(f"rules are not healthy: {ill}")
    return f"{seen.total()} targets up, {len(rules)} rules healthy"


def restart_the_stores(project: Project) -> str:
    """Let jobs become due while the broker, then the database, are away."""
    asyncio.run(publish_jobs(project.amqp_url, "http://receiver:8090/load"))
    for store in ("rabbitmq", "postgres"):
        project.run("restart", store)
    project.wait_until_healthy()
    rung, called = asyncio.run(wait_for_jobs(project.database_url))
    lines = project.run("logs", "--no-log-prefix", "receiver").splitlines()
    first = sum(" first " in line and "load-" in line for line in lines)
    if (rung, called, first) != (JOBS, JOBS, JOBS):
        raise StepError(f"of {JOBS} jobs {rung} rang, {called} deliveries were completed, the receiver counted {first}")
    return f"{rung} of {JOBS} jobs rang, each webhook took effect once"


def change_passwords(project: Project) -> str:
    """Change passwords as docs/operations/install.md says: tell Postgres the operator's new one, and then `up` applies
    the others.
    """
    new = secrets.token_hex(8)
    project.run("exec", "-T", "postgres", "psql", "-U", "duebell", "-c", r"\password", given=f"{new}\n{new}\n")
    project.settings |= {"POSTGRES_PASSWORD": new}
    project.settings |= {f"{service.upper()}_PASSWORD": secrets.token_hex(8) for service in SERVICES}
    project.up()
    expect_services(project, 1)
    return "the operator's and the services' new ones are used"


def stop_and_start(project: Project) -> str:
    """Stop everything and start it again. Services end by themselves when they are asked to; data outlives the
    containers.
    """
    rows = _count_jobs(project)
    project.run("stop")
    codes = {container.service: container.exit_code for container in project.containers()}
    if bad := {service: codes[service] for service in (*SERVICES, CONSOLE, "receiver") if codes[service] != 0}:
        raise StepError(f"exit statuses: {bad}")
    project.run("down")
    project.up()
    if _count_jobs(project) != rows:
        raise StepError(f"there were {rows} jobs, and now there are {_count_jobs(project)}")
    return f"every service ended with 0; {rows} jobs are still there"


def remove(project: Project) -> str:
    """Remove the project. Nothing of it is left, volumes without a name included."""
    project.run("down", "--volumes", "--rmi", "local")
    for kind, kept in (("container", set[str]()), ("volume", set()), ("network", {"bridge", "host", "none"})):
        names = "{{.Names}}" if kind == "container" else "{{.Name}}"
        everything = ["--all"] if kind == "container" else []
        left = set(run_docker(["docker", kind, "ls", *everything, "--format", names], COMPOSE_LOG).split()) - kept
        if left:
            raise StepError(f"{kind}s are left: {sorted(left)}")
    return "no container, network or volume is left"


def expect_services(project: Project, number: int) -> None:
    """Wait until the command line, in its own container, sees so many of each service and no problem."""
    said: dict[str, Any] = {}

    def all_well() -> bool:
        nonlocal said
        said = project.status()
        problems = [each for each in said["attention"] if each["is_problem"]]
        return said["services"] == dict.fromkeys(SERVICES, number) and not problems

    if not wait_until(all_well, 60):
        raise StepError(f"the command line says {said['services']}, and of what needs attention: {said['attention']}")


def close_way_out() -> None:
    """Cut the namespaces off from all networks: images are there, and nothing that runs needs any."""
    subprocess.run(["chroot", str(ENGINE_ROOT), "ip", "link", "set", "tap0", "down"], check=True, timeout=30)


def _starts(project: Project) -> dict[str, str]:
    """Return when each running container was started."""
    ids = [container.id for container in project.containers() if container.state == "running"]
    text = run_docker(["docker", "inspect", "--format", "{{.Id}} {{.State.StartedAt}}", *ids], COMPOSE_LOG)
    return dict(line.split() for line in text.splitlines())


def _count_jobs(project: Project) -> int:
    query = "select count(*) from jobs"
    return int(project.run("exec", "-T", "postgres", "psql", "-U", "duebell", "--tuples-only", "-c", query))


def _ask_prometheus(what: str) -> dict[str, list[dict[str, Any]]]:
    with urlopen(f"http://127.0.0.1:{PORTS['PROMETHEUS_PORT']}/api/v1/{what}", timeout=10) as answer:
        data: dict[str, list[dict[str, Any]]] = json.load(answer)["data"]
    return data


# Three first starts in a row: one that fails now and then shall be seen.
STEPS: tuple[tuple[str, Step], ...] = (
    ("`up --build` from nothing", start_from_nothing),
    ("again from nothing", start_from_nothing),
    ("and again", start_from_nothing),
    ("confinement of the services", look_at_confinement),
    ("schedule, ring, webhook", ring),
    ("`run --rm cli status`", ask_for_the_status),
    ("the console", look_at_the_console),
    ("`up --scale` to two of each", scale),
    ("Prometheus", look_at_prometheus),
    ("stores restarted, 200 jobs in flight", restart_the_stores),
    ("new passwords in `.env`", change_passwords),
    ("`stop`, `down`, `up`", stop_and_start),
    ("`down --volumes`", remove),
)
