"""Reads the /metrics of a service as Prometheus does."""

from dataclasses import dataclass

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from tests.support.eventually import PATIENCE, eventually


@dataclass(frozen=True, slots=True)
class Metrics:
    """`await metrics.value("commands_total", outcome="accepted")`."""

    port: int

    async def values(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """Every sample by its name and labels. AssertionError while the service does not answer yet."""
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE)) as client,
                client.get(f"http://127.0.0.1:{self.port}/metrics") as answer,
            ):
                text = await answer.text()
        except aiohttp.ClientConnectionError as error:
            raise AssertionError(f"the service does not answer on port {self.port}: {error!r}") from error
        families = text_string_to_metric_families(text)
        return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}

    async def value(self, name: str, **labels: str) -> float:
        return (await self.values())[name, frozenset(labels.items())]

    async def reaches(self, expected: float, name: str, within: float = 30.0, **labels: str) -> None:
        """Wait until the value is at least `expected`. The service may still be starting."""

        async def look() -> bool:
            try:
                seen = await self.value(name, **labels)
            except KeyError as error:
                raise AssertionError(f"{name} {labels} is not there: {error!r}") from error
            assert seen >= expected, f"{name} {labels} is {seen}, not yet {expected}"
            return True

        await eventually(look, within)
