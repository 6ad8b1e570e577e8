"""The receiver is difficult, by its seed alone, and never for ever."""

from collections import Counter

from tests.chaos.receiver import GOOD, MOODS, mood


def test_it_is_in_every_mood_now_and_then_and_mostly_in_a_good_one() -> None:
    moods = Counter(mood(1, f"key {number}", 1)[0] for number in range(5000))
    assert set(moods) == {GOOD, *MOODS}
    assert moods[GOOD] > 4000


def test_the_same_seed_gives_the_same_moods() -> None:
    assert [mood(1, f"key {n}", 1) for n in range(500)] == [mood(1, f"key {n}", 1) for n in range(500)]
    assert [mood(1, f"key {n}", 1) for n in range(500)] != [mood(2, f"key {n}", 1) for n in range(500)]


def test_the_third_call_is_always_answered() -> None:
    assert {mood(1, f"key {number}", 3) for number in range(2000)} == {(GOOD, True)}
