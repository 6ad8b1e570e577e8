"""Gets the images that docker-compose.yml pins: from a registry where one can be reached; else makes stand-ins of them
from Debian's packages, which behave as the official images do as far as docker-compose.yml is concerned.
"""

import hashlib
import os
import re
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stack.errors import StackError
from tools.engine.layout import BASES, ENGINE, ENGINE_ROOT
from tools.engine.pinned import pinned_images
from tools.platforms.system import mirror

PULL_SECONDS = 600.0
MAKE_SECONDS = 900.0
STAND_INS = Path(__file__).parent / "stand_ins"
LABEL = "duebell.stand-in"
IMAGES_LOG = ENGINE / "run/logs/images.log"
# Debian testing has the current versions of the stores; Debian 13 has the Python that the Dockerfile names.
BASE_OF = {"python": "trixie"}
USUAL_BASE = "testing"
VERSION_OF = {
    "postgres": ("postgres", "--version"),
    "rabbitmq": ("rabbitmqctl", "version"),
    "prometheus": ("prometheus", "--version"),
    "python": ("python3", "--version"),
}


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is there under the name that docker-compose.yml has for it."""

    name: str
    stands_in: bool


def get_images(tell: Callable[[str], None]) -> list[Image]:
    """Get all pinned images. Raises StackError if one can neither be pulled nor made."""
    return [_get(name, image, tell) for name, image in sorted(pinned_images().items())]


def version_of(image: Image) -> str:
    """Return in words what runs under the name of the image."""
    if not image.stands_in:
        return "the image itself"
    name = next(name for name, pinned in pinned_images().items() if pinned == image.name)
    if name not in VERSION_OF:
        return "a stub that answers the health check"
    program, *arguments = VERSION_OF[name]
    said = _docker("run", "--rm", "--network=none", f"--entrypoint={program}", image.name, *arguments) or ""
    found = re.search(r"\d+[.]\d+([.]\d+)?", said)
    return f"a stand-in with {found[0] if found else 'an unknown version'}, from Debian {BASE_OF.get(name, USUAL_BASE)}"


def _get(name: str, image: str, tell: Callable[[str], None]) -> Image:
    made_from = _fingerprint(name)
    present = _docker("image", "inspect", "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', image)
    if present is not None and present.strip() in {"", made_from}:
        return Image(image, stands_in=present.strip() != "")
    if _docker("pull", "--quiet", image, seconds=PULL_SECONDS) is not None:
        tell(f"pulled {image}")
        return Image(image, stands_in=False)
    tell(f"no registry has {image} for this machine: making a stand-in …")
    base = _base(BASE_OF.get(name, USUAL_BASE), tell)
    with tempfile.TemporaryDirectory(dir=ENGINE / "run") as directory:
        context = Path(directory) / name
        shutil.copytree(STAND_INS / name, context)
        if name == "python":
            _write_registry_settings(context)
        options = (f"--build-arg=BASE={base}", f"--label={LABEL}={made_from}", f"--tag={image}")
        if _docker("build", *options, str(context), seconds=MAKE_SECONDS) is None:
            raise StackError(f"the stand-in of {image} could not be made; {IMAGES_LOG} tells why")
    return Image(image, stands_in=True)


def _base(release: str, tell: Callable[[str], None]) -> str:
    """Return the name of an image of Debian, made by debootstrap if it is missing."""
    image = f"duebell-stand-in:{release}"
    if _docker("image", "inspect", image) is not None:
        return image
    tell(f"debootstrap of {release} …")
    system = BASES / release
    shutil.rmtree(system, ignore_errors=True)
    BASES.mkdir(exist_ok=True)
    scripts = ENGINE_ROOT / "usr/share/debootstrap"
    command = (
        ENGINE_ROOT / "usr/sbin/debootstrap",
        "--variant=minbase",
        release,
        system,
        mirror(),
        scripts / "scripts/sid",
    )
    _run(command, {**os.environ, "DEBOOTSTRAP_DIR": str(scripts)})
    # A mirror may be a stored copy.
    (system / "etc/apt/apt.conf.d/90duebell").write_text('Acquire::Check-Valid-Until "false";\n')
    with subprocess.Popen(["tar", "--create", "--directory", system, "."], stdout=subprocess.PIPE) as content:
        _run(("docker", "import", "-", image), stdin=content.stdout)
    shutil.rmtree(system)
    return image


def _fingerprint(name: str) -> str:
    """Return a short text that changes with the files of a stand-in and with the version that is pinned."""
    digest = hashlib.sha256(pinned_images()[name].encode())
    for file in sorted((STAND_INS / name).iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _write_registry_settings(context: Path) -> None:
    """Write down whom this machine trusts, and its index of Python packages if it has one of its own."""
    trusted = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    shutil.copy(trusted or "/etc/ssl/certs/ca-certificates.crt", context / "authorities.crt")
    settings = {"cert": "/etc/ssl/certs/ca-certificates.crt", "index-url": os.environ.get("PIP_INDEX_URL", "")}
    lines = [f"{name} = {value}" for name, value in settings.items() if value]
    (context / "pip.conf").write_text("\n".join(["[global]", *lines]) + "\n")


def _docker(*arguments: str, seconds: float = 60.0) -> str | None:
    """Return what `docker` prints, or None if it fails."""
    with IMAGES_LOG.open("ab") as log:
        log.write(f"\n== docker {' '.join(arguments)}\n".encode())
        log.flush()
        try:
            done = subprocess.run(
                ["docker", *arguments], stdout=subprocess.PIPE, stderr=log, text=True, check=False, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return None
    return done.stdout if done.returncode == 0 else None


def _run(
    command: Sequence[str | Path], environment: dict[str, str] | None = None, stdin: IO[bytes] | None = None
) -> None:
    with IMAGES_LOG.open("ab") as log:
        done = subprocess.run(
            command, env=environment, stdin=stdin, stdout=log, stderr=log, check=False, timeout=MAKE_SECONDS
        )
    if done.returncode != 0:
        raise StackError(f"{command[0]} failed; {IMAGES_LOG} tells why")
