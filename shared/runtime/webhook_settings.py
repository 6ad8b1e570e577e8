"""Settings about webhooks that both consumer and delivery read: what delivery would never call, the consumer refuses
when it is scheduled.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from shared.contract.address_rules import AddressRules, Network, parse_networks, parse_ports
from shared.runtime.settings import Settings


def _networks(value: Any) -> Any:  # noqa: ANN401 - a text from the environment, or a value from a test
    return parse_networks(value) if isinstance(value, str) else value


def _ports(value: Any) -> Any:  # noqa: ANN401
    return parse_ports(value) if isinstance(value, str) else value


def split_names(value: Any) -> Any:  # noqa: ANN401
    """Split a list such as "billing, shop" from the environment."""
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


class WebhookSettings(Settings):
    webhook_allow_networks: Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_networks)] = Field(
        default=(),
        description="networks that may be called although they are not public, such as 10.1.0.0/16,fd00::/8; the same "
        "for consumer and delivery",
    )
    webhook_allow_ports: Annotated[frozenset[int], NoDecode, BeforeValidator(_ports)] = Field(
        default=frozenset(),
        description="the only ports that may be called, such as 80,443; empty: every port; the same for consumer and "
        "delivery",
    )
    webhook_secret_names: Annotated[frozenset[str], NoDecode, BeforeValidator(split_names)] = Field(
        default=frozenset(),
        description="names of the secrets that delivery knows, such as billing,shop; the consumer refuses a request "
        "with another one, and delivery does not start without a secret for each; empty: every name is taken; the same "
        "for consumer and delivery",
    )

    @property
    def address_rules(self) -> AddressRules:
        return AddressRules(self.webhook_allow_networks, self.webhook_allow_ports)
