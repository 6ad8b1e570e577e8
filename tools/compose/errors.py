"""The one error of `make compose`."""


class StepError(Exception):
    """A step did not go as it should; its text says what was seen."""
