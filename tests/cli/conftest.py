from collections.abc import AsyncIterator

import pytest

from tests.cli.command_line import Operator, an_operator
from tests.support.stores import Site


@pytest.fixture
async def duebell(site: Site) -> AsyncIterator[Operator]:
    async with an_operator(site) as operator:
        yield operator
