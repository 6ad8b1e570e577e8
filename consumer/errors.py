"""The consumer's exceptions.

Exception
└── Refusal     a command cannot be carried out; raised while it is read, and caught by `read_command`
"""


class Refusal(Exception):
    """Ends the reading of a command early. Each of its errors names its field first."""

    def __init__(self, *errors: str) -> None:
        super().__init__(*errors)
        self.errors = errors
