"""One mistake, as data: which text of which file becomes what, and which tests must fail then. Pure."""

from dataclasses import dataclass

LIST = "tests/mutants/list.py"
UNIT_TESTS = "tests/unit/"


class CodeHasMoved(Exception):
    """The text that a mutant replaces is not in its file, or is there more than once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    name: str
    harm: str  # what a user would suffer from it, in one sentence
    file: str
    before: str  # occurs exactly once in the file
    after: str
    tests: tuple[str, ...]  # pytest node ids without parameters; one of them must fail

    @property
    def is_quick(self) -> bool:
        """Whether its tests need no stores."""
        return all(test.startswith(UNIT_TESTS) for test in self.tests)

    def mutated(self, text: str) -> str:
        """The text of the file with the mistake in it."""
        times = text.count(self.before)
        if times != 1:
            raise CodeHasMoved(
                f"the code has moved: {LIST}, mutant {self.name}: its text is {times} times in {self.file}"
            )
        return text.replace(self.before, self.after)
