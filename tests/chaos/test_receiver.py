"""What the receiver does depends on its seed alone, and every key gets a 200 in the end."""

from collections import Counter

from tests.chaos.receiver import BEHAVIOURS, GOOD, behaviour


def test_the_receiver_mostly_answers_200_and_sometimes_does_everything_else() -> None:
    behaviours = Counter(behaviour(1, f"key {number}", 1)[0] for number in range(5000))
    assert set(behaviours) == {GOOD, *BEHAVIOURS}
    assert behaviours[GOOD] > 4000


def test_the_same_seed_gives_the_same_behaviour() -> None:
    assert [behaviour(1, f"key {n}", 1) for n in range(500)] == [behaviour(1, f"key {n}", 1) for n in range(500)]
    assert [behaviour(1, f"key {n}", 1) for n in range(500)] != [behaviour(2, f"key {n}", 1) for n in range(500)]


def test_the_third_call_is_always_answered() -> None:
    assert {behaviour(1, f"key {number}", 3) for number in range(2000)} == {(GOOD, True)}
