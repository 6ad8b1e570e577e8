"""The console's exceptions.

Exception
├── PageFailure  a page cannot be shown, or a form is not taken: the visitor reads the reason and what to do
├── ApiFailure   a request of the HTTP API is not carried out: the answer has the status and the errors
└── NotSent      the broker has taken none of the commands: pages and the HTTP API answer with 503

Exceptions of the shared packages are in `shared.errors`; errors of Postgres and of the broker are those of libraries.
"""


class PageFailure(Exception):
    """A page cannot be shown, or a form is not taken. The visitor reads the reason and what to do."""

    def __init__(self, status: int, title: str, text: str) -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.text = text


class ApiFailure(Exception):
    """A request is not carried out: nothing was changed, and `errors` say why."""

    def __init__(self, status: int, *errors: str) -> None:
        super().__init__(*errors)
        self.status = status
        self.errors = errors


class NotSent(Exception):
    """The broker did not take the commands, and has none of them."""


def not_found(text: str) -> PageFailure:
    return PageFailure(404, "Not found", text)


def not_allowed(text: str) -> PageFailure:
    return PageFailure(403, "Not allowed", text)
