"""`python -m delivery` as the acceptance tests start it: loopback open, short leases, quick retries."""

from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.services import ServiceProcess, service_process
from tests.support.stores import Site


def delivery_process(site: Site, directory: Path, **environment: str) -> AbstractContextManager[ServiceProcess]:
    given = {
        "WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
        "LEASE_MARGIN_SECONDS": "1",
        "RETRY_BASE_SECONDS": "0.05",
        "LOG_LEVEL": "debug",
    }
    return service_process("delivery", site, directory, **{**given, **environment})
