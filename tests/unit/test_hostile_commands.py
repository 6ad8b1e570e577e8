"""Every case of the hostile corpus is stored, or refused with a reason that names the field, in bounded work. The
integration tests send the same cases through a real broker.
"""

from functools import partial

import pytest

from consumer.commands.parse import Command, Refused
from consumer.commands.schedule import Schedule, list_upcoming
from tests.hostile.case import Case
from tests.hostile.corpus import FAMILIES, committed, from_line, generated, load
from tests.hostile.reading import read
from tests.support.builders import NOON
from tests.unit.recurrence.test_bombs import ALLOWED_SECONDS, cpu_of

CORPUS = load()


@pytest.mark.parametrize("family", committed().keys())
def test_every_case_is_stored_or_refused_with_a_reason_that_names_the_field(family: str) -> None:
    wrong = [
        f"{case.name}: {problem}"
        for case in map(from_line, committed()[family].splitlines())
        if (problem := what_is_wrong_with(read(case, NOON), case))
    ]
    assert not wrong


def what_is_wrong_with(command: Command, case: Case) -> str | None:
    match command:
        case Refused(errors):
            if case.field is None:
                return f"refused: {errors}"
            bounded = len(errors) <= 10 and all(len(error) <= 300 for error in errors)
            if command.parked != case.is_parked:
                return "parked" if command.parked else "not parked"
            return None if errors[0].startswith(f"{case.field}:") and bounded else f"refused, but for {errors}"
        case _:
            return None if case.field is None else "stored"


@pytest.mark.parametrize("family", committed().keys())
def test_no_case_takes_long(family: str) -> None:
    """Measure the least CPU time of three cold runs, and leave room for a busy machine, as the tests of rules do."""

    def answer(case: Case) -> None:
        command = read(case, NOON)
        if isinstance(command, Schedule):
            list_upcoming(command)

    for case in map(from_line, committed()[family].splitlines()):
        assert cpu_of(partial(answer, case), enough=ALLOWED_SECONDS) < ALLOWED_SECONDS, case.name


def test_the_committed_corpus_is_the_one_that_the_families_make() -> None:
    """After a change of a family, `python -m tests.hostile` writes the corpus again."""
    assert committed() == generated()


def test_the_corpus_is_large_and_every_name_in_it_is_one_case() -> None:
    assert len(CORPUS) >= 1_000
    assert len({case.name for case in CORPUS}) == len(CORPUS)
    assert {case.field is None for case in CORPUS} == {True, False}


def test_a_line_is_read_as_it_was_written() -> None:
    assert [case for cases in FAMILIES.values() for case in cases()] == CORPUS
