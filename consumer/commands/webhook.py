"""What is known when a webhook is scheduled about calls that could never be made. Pure.

The delivery service judges again when it calls: which addresses a name has, and which secrets there are by then.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from difflib import get_close_matches
from urllib.parse import urlsplit

from consumer.errors import Refusal
from shared.contract.address_rules import AddressRules
from shared.contract.messages import Webhook
from shared.errors import ForbiddenAddress

_PORT_OF_SCHEME = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """What the operator has told the consumer about the delivery service, by settings."""

    addresses: AddressRules = field(default_factory=AddressRules)
    secret_names: AbstractSet[str] = frozenset()  # empty: not known


def check_webhook(webhook: Webhook, rules: WebhookRules) -> None:
    """Raise Refusal if delivery would never call the URL, or does not know the secret.

    The error quotes neither the host nor the secret's name: publishers have mistaken a secret's value for its name.
    """
    errors = [*_address_errors(webhook.url, rules.addresses), *_secret_errors(webhook.secret, rules.secret_names)]
    if errors:
        raise Refusal(*errors)


def _address_errors(url: str, rules: AddressRules) -> Iterator[str]:
    parts = urlsplit(url)
    port = parts.port or _PORT_OF_SCHEME[parts.scheme]
    try:
        rules.check_written_host(parts.hostname or "")
    except ForbiddenAddress:
        yield "webhook.url: the address is not public, and Duebell may not call it (WEBHOOK_ALLOW_NETWORKS)"
    if not rules.allows_port(port):
        yield f"webhook.url: Duebell may not call port {port} (WEBHOOK_ALLOW_PORTS)"


def _secret_errors(name: str | None, known: AbstractSet[str]) -> Iterator[str]:
    if name is not None and known and name not in known:
        meant = get_close_matches(name, sorted(known), n=1)
        hint = f"; did you mean {meant[0]}?" if meant else ""
        yield f"webhook.secret: Duebell knows no secret of this name (WEBHOOK_SECRET_NAMES){hint}"
