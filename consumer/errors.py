"""The consumer's exceptions, those of single modules included.

Exception
├── Refusal        a command cannot be carried out; raised while it is read, caught by `read_command`
├── BadEnvelope    (commands.masstransit_fields) an envelope cannot be read: its message is parked
└── HeldByAnother  (bulks) another transaction holds the first job of a step: the step is tried again later

Everything else that the consumer catches belongs to a library or to shared/: `shared.postgres.errors` says which errors
of Postgres are about a row and which can be retried, `shared.amqp.connection` which errors a lost broker raises.
"""


class Refusal(Exception):
    """Ends the reading of one command. Each error text begins with the name of the field that it is about."""

    def __init__(self, *errors: str) -> None:
        super().__init__(*errors)
        self.errors = errors
