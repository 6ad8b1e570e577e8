"""The users of the stores and their rights: the same as those that docker-compose.yml sets up from the files in
`deploy/roles/`. Passwords are random and live as long as the store.
"""

import secrets
from pathlib import Path

ROLES = Path(__file__).parent.parent / "deploy" / "roles"
POSTGRES_SCRIPT = ROLES / "postgres.sql"
DEFINITIONS = ROLES / "rabbitmq.json"

OPERATOR = "duebell"
READER = "duebell_reader"
CONSOLE_USER = "duebell_console"
APPLICATION = "my-app"
_VARIABLES = {
    OPERATOR: "RABBITMQ_PASSWORD",
    "duebell_consumer": "CONSUMER_PASSWORD",
    "duebell_producer": "PRODUCER_PASSWORD",
    "duebell_delivery": "DELIVERY_PASSWORD",
    READER: "READER_PASSWORD",
    CONSOLE_USER: "CONSOLE_PASSWORD",
    APPLICATION: "APPLICATION_PASSWORD",
}


def role_of(service: str) -> str:
    return f"duebell_{service}"


def new_passwords() -> dict[str, str]:
    """Make a random password for each user."""
    return {user: secrets.token_hex(16) for user in _VARIABLES}


def as_variables(passwords: dict[str, str]) -> dict[str, str]:
    """Return the passwords by the names of their variables in the files of `deploy/roles/`."""
    return {_VARIABLES[user]: password for user, password in passwords.items()}


def rabbitmq_definitions(passwords: dict[str, str], prefix: str) -> str:
    """Return the definitions that the broker loads at its start. `prefix` is a pattern for what may stand before the
    names of Duebell's exchanges and queues.
    """
    text = DEFINITIONS.read_text().replace("@PREFIX@", prefix)
    for variable, password in as_variables(passwords).items():
        text = text.replace(f"@{variable}@", password)
    return text
