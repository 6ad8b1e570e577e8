"""The list follows the code: the text that a mutant replaces is in its file once, and the tests that it names exist."""

import re
from functools import cache

import pytest

from tests.mutants.list import MUTANTS
from tests.mutants.mutant import CodeHasMoved, Mutant
from tests.support.services import ROOT

of_each = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


@cache
def functions_of(file: str) -> frozenset[str]:
    return frozenset(re.findall(r"^(?:async )?def (\w+)", (ROOT / file).read_text(), re.MULTILINE))


@of_each
def test_its_text_is_in_its_file_once_and_what_comes_of_it_can_be_imported(mutant: Mutant) -> None:
    mutated = mutant.mutated((ROOT / mutant.file).read_text())
    compile(mutated, mutant.file, "exec")


@of_each
def test_every_test_that_it_names_is_there(mutant: Mutant) -> None:
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert name in functions_of(file), test


@of_each
def test_a_mutant_changes_a_service_or_a_shared_module(mutant: Mutant) -> None:
    assert mutant.file.split("/")[0] in {"consumer", "producer", "delivery", "shared"}
    assert mutant.before != mutant.after
    assert mutant.harm.endswith(".")


def test_names_are_unique_and_there_are_thirty_at_least() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names)) >= 30


@pytest.mark.parametrize(("text", "times"), [("nothing of it", 0), ("one = 1\none = 1\n", 2)])
def test_code_that_has_moved_is_named_with_its_mutant(text: str, times: int) -> None:
    mutant = Mutant(name="x", harm="None.", file="a.py", before="one = 1\n", after="one = 2\n", tests=())
    with pytest.raises(
        CodeHasMoved, match=f"the code has moved: .*list.py, mutant x: its text is {times} times in a.py"
    ):
        mutant.mutated(text)
