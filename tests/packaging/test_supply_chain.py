"""What a release installs: pinned and hashed, so that a wheel that was tampered with is refused; listed in a bill of
materials that can be made again; and checked for known vulnerabilities where a source answers.
"""

import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from shared.version import VERSION
from tests.support.services import ROOT

LOCKS = [
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-fuzz.lock",
    "requirements-celery.lock",
    *(f"client/{lock.name}" for lock in sorted((ROOT / "client").glob("*.lock"))),
]


def entries(lock: str) -> dict[str, str]:
    """Each requirement's lines, by name."""
    text = (ROOT / lock).read_text()
    found = re.findall(r"^([a-z0-9][\w.-]*)(==[\s\S]*?)(?=^[a-z0-9]|\Z)", text, re.MULTILINE)
    return {name: f"{name}{rest}" for name, rest in found}


def run(*command: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    inherited = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_pinned_and_hashed_and_names_no_index(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert len(entries(lock)) == len([line for line in text.splitlines() if line[:1] not in {" ", "#", ""}])
    assert len(entries(lock)) > (0 if lock == "requirements-fuzz.lock" else 5)
    for name, entry in entries(lock).items():
        assert re.match(rf"{re.escape(name)}==\S+( ;.*)? \\\n", entry), name
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), name
    assert not re.search(r"https?:|index|find-links|trusted|@ ", text.replace("# via", ""))


def test_hashes_are_required_wherever_the_locks_are_installed() -> None:
    for file in ("stack/setup.sh", "Dockerfile"):
        installs = [line for line in (ROOT / file).read_text().splitlines() if "pip install" in line]
        assert installs
        assert all("--require-hashes" in line for line in installs), file


def test_a_wheel_that_was_tampered_with_is_not_installed(tmp_path: Path) -> None:
    """Under the name and version that the lock asks for, with other bytes in it."""
    entry = entries("requirements.lock")["standardwebhooks"]
    [version] = re.findall(r"==([\w.]+)", entry)
    wheelhouse = tmp_path / "wheels"
    wheelhouse.mkdir()
    forge_wheel(wheelhouse, "standardwebhooks", version)
    pinned, unhashed = tmp_path / "pinned.txt", tmp_path / "unhashed.txt"
    pinned.write_text(entry)
    unhashed.write_text(f"standardwebhooks=={version}\n")
    target = tmp_path / "installed"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "install", "--isolated", "--disable-pip-version-check"]
    pip += ["--no-index", "--no-deps", "--no-cache-dir", "--find-links", wheelhouse, "--target", target]

    refused = run(*pip, "--require-hashes", "--requirement", pinned)
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
    assert not target.exists()

    taken = run(*pip, "--requirement", unhashed)
    assert taken.returncode == 0, f"without hashes it would have been installed: {taken.stderr}"
    assert (target / "standardwebhooks.py").read_text() == "print('gotcha')\n"


def forge_wheel(directory: Path, name: str, version: str) -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", "print('gotcha')\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_the_bill_of_materials_is_valid_complete_and_the_same_every_time(tmp_path: Path) -> None:
    # It takes seconds to import, which each process of a run would spend.
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    texts = []
    for number in (1, 2):
        file = tmp_path / f"{number}.json"
        made = run(ROOT / ".ci/sbom", file)
        assert made.returncode == 0, made.stderr
        texts.append(file.read_text())
    assert texts[0] == texts[1]
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(texts[0]) is None
    content = json.loads(texts[0])
    release = content["metadata"]["component"]
    assert (release["name"], release["version"]) == ("duebell-server", VERSION)
    assert release["licenses"] == [{"license": {"acknowledgement": "declared", "id": "MIT"}}]
    listed = {part["name"]: part for part in content["components"]}
    assert listed.keys() == entries("requirements.lock").keys()
    for name, entry in entries("requirements.lock").items():
        hashes = {h["content"] for reference in listed[name]["externalReferences"] for h in reference["hashes"]}
        assert hashes == set(re.findall(r"sha256:([0-9a-f]{64})", entry))
        assert f"=={listed[name]['version']}" in entry


def test_a_register_that_cannot_be_asked_is_said_plainly_and_fails_only_the_strict() -> None:
    unreachable = {"HTTPS_PROXY": "http://127.0.0.1:9"}
    lenient = run(ROOT / ".ci/audit", **unreachable)
    assert (lenient.returncode, "NOT DONE" in lenient.stderr) == (0, True), lenient.stderr
    assert "nothing is known" not in lenient.stdout
    strict = run(ROOT / ".ci/audit", STRICT="1", **unreachable)
    assert (strict.returncode, "NOT DONE" in strict.stderr) == (1, True)


@contextmanager
def a_register(known_against: str) -> Iterator[str]:
    """Answers as osv.dev does."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known: list[dict[str, Any]] = []
            if asked["package"]["name"] == known_against:
                package = {"name": known_against, "ecosystem": "PyPI"}
                ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}]
                affected = [{"package": package, "ranges": ranges}]
                known = [{"id": "PYSEC-2026-1", "details": "made up", "affected": affected}]
            body = json.dumps({"vulns": known} if known else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@pytest.mark.parametrize(("known_against", "status"), [("no package", 0), ("aiohttp", 1)])
def test_a_known_vulnerability_fails_the_audit(known_against: str, status: int) -> None:
    with a_register(known_against) as url:
        outcome = run(ROOT / ".ci/audit", "--vulnerability-service", "osv", "--osv-url", url, NO_PROXY="127.0.0.1")
    assert outcome.returncode == status, outcome.stderr
    assert ("PYSEC-2026-1" in outcome.stdout) == (status == 1)
    assert ("nothing is known" in outcome.stdout) == (status == 0)
