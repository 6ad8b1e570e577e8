"""Failures that a page shows in words."""


class PageFailure(Exception):
    """A page cannot be shown, or a form not be taken; the visitor reads the reason and what to do."""

    def __init__(self, status: int, title: str, text: str) -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.text = text


def not_found(text: str) -> PageFailure:
    return PageFailure(404, "Not found", text)


def not_allowed(text: str) -> PageFailure:
    return PageFailure(403, "Not allowed", text)
