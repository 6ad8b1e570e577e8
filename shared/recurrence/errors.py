"""The one error of this package: a rule that cannot be understood, or that could never ring."""


class BadRule(ValueError):
    """Says what is wrong in words for who wrote the rule, and in `field` which field of the request it is."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
