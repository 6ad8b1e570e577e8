"""How reading a command ends early: with reasons, each of which names its field first."""


class Refusal(Exception):
    def __init__(self, *errors: str) -> None:
        super().__init__(*errors)
        self.errors = errors
