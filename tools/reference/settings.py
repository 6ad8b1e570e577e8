"""The settings of every service: from the models that read the environment."""

from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from console.settings import ConsoleSettings
from consumer.settings import ConsumerSettings
from delivery.settings import DeliverySettings
from producer.settings import ProducerSettings
from shared.runtime.settings import Settings
from tools.reference.markdown import code, page, table

SERVICES: dict[str, type[Settings]] = {
    "consumer": ConsumerSettings,
    "producer": ProducerSettings,
    "delivery": DeliverySettings,
    "console": ConsoleSettings,
}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "max_length": "characters: at most"}


def settings_page() -> str:
    everywhere = [name for name in Settings.model_fields if name != "metrics_port"]
    sections = [
        f"## {title}\n\n{table(('variable', 'default', 'meaning', 'limits'), rows)}"
        for title, rows in (
            ("Every service", [_row(name, Settings.model_fields[name]) for name in everywhere]),
            *((service.capitalize(), _own(settings)) for service, settings in SERVICES.items()),
        )
    ]
    return page(
        "Settings",
        "the settings of the services",
        "Services read their settings from the environment. `DATABASE_URL` and `AMQP_URL` are required; everything "
        "else has a default that suits a small installation. A service with a wrong setting ends with status 2 and a "
        "line that names the variable. Lists are separated by commas; a duration is in seconds.",
        *sections,
    )


def _own(settings: type[Settings]) -> list[tuple[str, ...]]:
    names = [name for name in settings.model_fields if name == "metrics_port" or name not in Settings.model_fields]
    return [_row(name, settings.model_fields[name]) for name in names]


def _row(name: str, field: FieldInfo) -> tuple[str, ...]:
    if not field.description:
        raise ValueError(f"{name} needs a description: Field(description=…)")
    return code(name.upper()), _default(field), field.description, _limits(field)


def _default(field: FieldInfo) -> str:
    default: Any = field.default
    if default is PydanticUndefined:
        return "required"
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    match default:
        case None | "" | () | frozenset():
            return "empty"
        case bool():
            return code(str(default).lower())
        case float():
            return code(f"{default:g}")
    return code(str(default))


def _limits(field: FieldInfo) -> str:
    found = []
    for constraint in field.metadata:
        if pattern := getattr(constraint, "pattern", None):
            found.append(pattern.strip("^$()").replace("|", ", "))
        found += [
            f"{words} {bound:,}"
            for name, words in _BOUNDS.items()
            if (bound := getattr(constraint, name, None)) is not None
        ]
    return "; ".join(found)
