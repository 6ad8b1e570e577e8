"""Every legal move works, every other one is refused: here by the code, in the integration tests by the schema."""

from itertools import product

import pytest

from delivery.errors import IllegalMove
from delivery.model import LEGAL_MOVES, DeliveryStatus, checked_move

LEGAL = {
    ("PENDING", "PROCESSING"),
    ("PROCESSING", "PROCESSING"),
    ("PROCESSING", "COMPLETED"),
    ("PROCESSING", "FAILED"),
}


@pytest.mark.parametrize(("source", "target"), list(product(DeliveryStatus, DeliveryStatus)))
def test_a_delivery_moves_as_the_table_says_and_in_no_other_way(source: DeliveryStatus, target: DeliveryStatus) -> None:
    if (source.value, target.value) in LEGAL:
        assert checked_move(source, target) is target
    else:
        with pytest.raises(IllegalMove):
            checked_move(source, target)


def test_every_state_is_in_the_table() -> None:
    assert set(LEGAL_MOVES) == set(DeliveryStatus)
