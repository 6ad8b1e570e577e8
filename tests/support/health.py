"""Health checks of a service, as an orchestrator makes them."""

import aiohttp

from tests.support.eventually import PATIENCE


async def health_of(port: int, path: str = "/readyz", host: str = "127.0.0.1") -> tuple[int, str]:
    """GET the path. Returns status and body; the status is 0 if no process answers."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE)) as client,
            client.get(f"http://{host}:{port}{path}") as answer,
        ):
            return answer.status, await answer.text()
    except (OSError, aiohttp.ClientConnectionError):
        return 0, ""


async def is_ready(port: int) -> bool:
    return (await health_of(port))[0] == 200
