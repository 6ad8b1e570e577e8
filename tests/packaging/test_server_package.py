"""The distribution `duebell-server`: its wheel is complete, and what is installed from it starts."""

import subprocess
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest

from cli.app import app
from shared.version import VERSION
from tests.support.installed_packages import (
    CLIENT,
    CLIENT_PACKAGE,
    METADATA,
    SERVER_PACKAGE,
    Package,
    build_wheel,
    server_python,
)
from tests.support.services import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CLIENT_PROJECT = tomllib.loads((CLIENT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def server_wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(build_wheel(SERVER_PACKAGE, tmp_path_factory.mktemp("wheel"))) as wheel:
        yield wheel


@pytest.fixture(scope="module")
def scripts() -> Path:
    return server_python().parent


def run(program: Path, *arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [program, *arguments], cwd=cwd, env={}, capture_output=True, text=True, timeout=60, check=False
    )


def metadata_of(wheel: zipfile.ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return HeaderParser().parsestr(wheel.read(name).decode())


@pytest.mark.parametrize("package", [SERVER_PACKAGE, CLIENT_PACKAGE], ids=lambda package: package.name)
def test_a_wheel_has_every_file_of_the_package_and_no_other(package: Package, tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(package, tmp_path)) as wheel:
        packed = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
        [licence] = [name for name in wheel.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
        assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
        metadata = metadata_of(wheel)
    sources = {str(path.relative_to(package.directory)): path for path in package.sources()}
    assert packed == {name: path.read_bytes() for name, path in sources.items() if name not in METADATA}
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Version"]


def test_the_wheel_has_the_statements_of_the_migrations(server_wheel: zipfile.ZipFile) -> None:
    packed = {name for name in server_wheel.namelist() if name.endswith(".sql")}
    in_the_tree = {str(path.relative_to(ROOT)) for path in (ROOT / "shared").rglob("*.sql")}
    assert packed == in_the_tree
    assert len(packed) > 3


def test_the_command_line_starts_and_says_its_version(scripts: Path, tmp_path: Path) -> None:
    assert run(scripts / "duebell", "--version", cwd=tmp_path).stdout == f"duebell {VERSION}\n"
    helped = run(scripts / "duebell", "--help", cwd=tmp_path)
    assert helped.returncode == 0
    for command in app.registered_commands:
        name = command.name or str(getattr(command.callback, "__name__", ""))
        assert name in helped.stdout
    preview = run(scripts / "duebell", "preview", "30 9 * * 1-5", "--timezone", "Europe/Berlin", cwd=tmp_path)
    assert preview.returncode == 0, preview.stderr


@pytest.mark.parametrize(
    ("script", "needs"),
    [
        ("duebell-consumer", {"DATABASE_URL", "AMQP_URL"}),
        ("duebell-producer", {"DATABASE_URL", "AMQP_URL"}),
        ("duebell-delivery", {"DATABASE_URL", "AMQP_URL"}),
        ("duebell-console", {"DATABASE_URL", "AMQP_URL"}),
        ("duebell-migrate", {"DATABASE_URL"}),
        ("duebell-topology", {"AMQP_URL"}),
    ],
)
def test_a_program_without_settings_names_those_that_it_needs(
    scripts: Path, tmp_path: Path, script: str, needs: set[str]
) -> None:
    ended = run(scripts / script, cwd=tmp_path)
    assert ended.returncode != 0
    assert {line.partition(":")[0] for line in ended.stderr.splitlines()} == needs


def test_every_script_is_started_above(scripts: Path) -> None:
    assert {path.name for path in scripts.glob("duebell*")} == PROJECT["project"]["scripts"].keys()
    assert PROJECT["project"]["scripts"].keys() == {
        "duebell",
        *(f"duebell-{name}" for name in ("console", "consumer", "producer", "delivery", "migrate", "topology")),
    }


def test_the_version_is_in_one_place_alone(server_wheel: zipfile.ZipFile) -> None:
    assert PROJECT["project"]["dynamic"] == CLIENT_PROJECT["project"]["dynamic"] == ["version"]
    assert metadata_of(server_wheel)["Version"] == VERSION


def test_both_packages_are_built_with_what_one_lock_names() -> None:
    assert PROJECT["build-system"] == CLIENT_PROJECT["build-system"]


def test_both_packages_come_under_one_licence() -> None:
    assert PROJECT["project"]["license"] == CLIENT_PROJECT["project"]["license"] == "MIT"
    assert (CLIENT / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
