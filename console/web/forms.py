"""Reads forms, of a bounded size, and checks that they come from the console's own pages: by the origin that the
browser names, and by the token of the session.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from console.errors import PageFailure
from console.web.context import Console, Visitor

# A payload of 16 MiB is percent-encoded at worst to three times as much; usual ones are far smaller.
MAX_FORM_BYTES = 4 * 1024 * 1024
MAX_FIELDS = 2_000
TOKEN_FIELD = "form_token"  # noqa: S105 - the name of a field


@dataclass(frozen=True, slots=True)
class Form:
    fields: Mapping[str, list[str]]

    def text(self, name: str) -> str:
        """Return the first value of the field, or an empty text."""
        return self.fields.get(name, [""])[0]

    def all(self, name: str) -> list[str]:
        return self.fields.get(name, [])


async def read_form(request: Request) -> Form:
    """Read the body as a form. Raises PageFailure if it is too large or no form."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise PageFailure(413, "The form is too large", f"It may have {MAX_FORM_BYTES // 1024 // 1024} MiB.")
    fields: dict[str, list[str]] = {}
    try:
        for name, value in parse_qsl(
            body.decode(), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=MAX_FIELDS
        ):
            fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    except ValueError:
        raise PageFailure(400, "The form cannot be read", "Open the page again and send it once more.") from None
    return Form(fields)


def require_same_origin(request: Request, console: Console) -> None:
    """Raises PageFailure if the browser says that another site sends the form, or says nothing at all."""
    said = request.headers.get("Sec-Fetch-Site")
    if said is not None and said not in {"same-origin", "none"}:
        _refuse(console)
    origin = request.headers.get("Origin")
    if origin is None:
        if said is None:
            _refuse(console)
        return
    own = console.settings.origin or request.headers.get("Host", "").lower()
    try:
        asked = origin.lower() if console.settings.origin else urlsplit(origin).netloc.lower()
    except ValueError:
        _refuse(console)
    if not own or asked != own:
        _refuse(console)


def require_token(form: Form, visitor: Visitor, console: Console) -> None:
    """Raises PageFailure unless the form carries the token of this session."""
    if not hmac.compare_digest(form.text(TOKEN_FIELD).encode(), visitor.form_token.encode()):
        _refuse(console)


def _refuse(console: Console) -> NoReturn:
    console.metrics.refused_forms.inc()
    raise PageFailure(
        403,
        "This form was not sent",
        "It does not come from a page of this session: it may have been open since before the console was started "
        "again. Go back, reload the page and send it once more.",
    )
