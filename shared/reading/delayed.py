"""Lists and reads delayed messages, for the command line and the console. A query walks an index from where the one
before ended, reads MAX_MESSAGES_A_WALK rows at most, and keeps those that match. So its cost does not grow with the
table. A page may be short, or empty: `MessagePage.next` tells whether it is the last. Bodies are read one at a time.
"""

from dataclasses import dataclass
from datetime import datetime

from shared.contract.delayed import exchange_label, number_in, numbered_id, routing_key_text
from shared.contract.fields import format_instant, parse_date_time
from shared.postgres.pool import Connection

MAX_MESSAGES_A_WALK = 20_000
MAX_PAGE_MESSAGES = 10_000
MAX_MESSAGES_OF_ID = 100


@dataclass(frozen=True, slots=True)
class WantedMessages:
    """Selects delayed messages. `since` and `until` bound the due moment; `exchange` is the target."""

    exchange: str | None = None
    routing_key: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    refused: bool = False  # only those that the broker does not take

    @property
    def by_exchange(self) -> bool:
        """Whether the list is in the order of the due moments of one exchange."""
        return self.exchange is not None and not self.refused


@dataclass(frozen=True, slots=True)
class MessageCursor:
    """The place in a list behind which its next page begins. It stays valid while messages come and go."""

    moment: datetime
    number: int

    def __str__(self) -> str:
        return f"{format_instant(self.moment)}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> "MessageCursor":
        """Read what `str` wrote. Raises ValueError if the text is no cursor."""
        moment, slash, number = text.partition("/")
        if not slash or not number.isdecimal() or len(number) > 18:
            raise ValueError(f"{text!r} is not a cursor: give the one that the page before printed")
        return cls(parse_date_time(moment), int(number))


@dataclass(frozen=True, slots=True)
class ListedMessage:
    """A delayed message in a list. `id` is what commands call this one message."""

    id: str
    exchange: str  # as people read it: `(default)` is the default exchange
    routing_key: str
    due_at: datetime
    retry_at: datetime | None
    refusals: int
    refused_because: str | None
    message_id: str | None
    name: str | None
    owner: str | None
    received_at: datetime
    bytes: int


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages, those that are published next first, and where the next page begins. None: this was the last page."""

    messages: list[ListedMessage]
    next: MessageCursor | None


_COLUMNS = """id, exchange, routing_key, due_at, retry_at, refusals, refused_because, message_id, name, owner,
       received_at, bytes"""

# Parameters: $1 exchange, $2 routing key, $3 since, $4 until, $5 and $6 the cursor, $7 how many rows to read.
_KEY = "($2::bytea is null or routing_key = $2)"
_READY = f"""
select {_COLUMNS}, due_at as moment, {_KEY} and ($1::text is null or exchange = $1) as fits from delayed_messages
 where retry_at is null and due_at >= greatest($3::timestamptz, $5::timestamptz, '-infinity')
   and due_at < coalesce($4::timestamptz, 'infinity')
   and (due_at, id) > (coalesce($5, '-infinity'), coalesce($6::bigint, 0))
 order by due_at, id limit $7::int
"""  # noqa: S608 - put together from constants
_REFUSED = f"""
select {_COLUMNS}, retry_at as moment,
       {_KEY} and ($1::text is null or exchange = $1) and due_at >= coalesce($3::timestamptz, '-infinity')
       and due_at < coalesce($4::timestamptz, 'infinity') as fits
  from delayed_messages
 where retry_at is not null and retry_at >= coalesce($5::timestamptz, '-infinity')
   and (retry_at, id) > (coalesce($5, '-infinity'), coalesce($6::bigint, 0))
 order by retry_at, id limit $7::int
"""  # noqa: S608
_OF_EXCHANGE = f"""
select {_COLUMNS}, due_at as moment, {_KEY} as fits from delayed_messages
 where exchange = $1::text and due_at >= greatest($3::timestamptz, $5::timestamptz, '-infinity')
   and due_at < coalesce($4::timestamptz, 'infinity')
   and (due_at, id) > (coalesce($5, '-infinity'), coalesce($6::bigint, 0))
 order by exchange, due_at, id limit $7::int
"""  # noqa: S608
_ALL = f"select * from (({_READY}) union all ({_REFUSED})) as every order by moment, id limit $7::int"  # noqa: S608

_PAGE = """
with walked as materialized (select row_number() over (order by moment, id) as place, * from ({walk}) as read)
select last.moment as last_moment, last.id as last_id, last.place as rows_read, fitting.*
  from (select id, moment, place from walked order by place desc limit 1) as last
  left join (select * from walked where fits order by place limit $8::int) as fitting on true
 order by fitting.place
"""
LIST_MESSAGES = _PAGE.format(walk=_ALL)
LIST_REFUSED = _PAGE.format(walk=_REFUSED)
LIST_OF_EXCHANGE = _PAGE.format(walk=_OF_EXCHANGE)


async def list_messages(
    connection: Connection, wanted: WantedMessages, limit: int, after: MessageCursor | None = None
) -> MessagePage:
    """Return up to `limit` messages, at most MAX_PAGE_MESSAGES, behind the cursor, or from the start: those of one
    exchange in the order in which they are due, others in the order in which they are published or tried again.
    """
    limit = min(limit, MAX_PAGE_MESSAGES)
    key = None if wanted.routing_key is None else wanted.routing_key.encode()
    has_filter = key is not None or wanted.refused or not (wanted.by_exchange or wanted == WantedMessages())
    rows_to_read = max(limit, MAX_MESSAGES_A_WALK) if has_filter else limit
    statement = LIST_OF_EXCHANGE if wanted.by_exchange else LIST_REFUSED if wanted.refused else LIST_MESSAGES
    rows = await connection.fetch(
        statement,
        wanted.exchange,
        key,
        wanted.since,
        wanted.until,
        after.moment if after else None,
        after.number if after else None,
        rows_to_read,
        limit,
    )
    if not rows:
        return MessagePage([], None)
    fitting = [row for row in rows if row["id"] is not None]
    messages = [_listed(row) for row in fitting]
    if len(messages) == limit:
        return MessagePage(messages, MessageCursor(fitting[-1]["moment"], fitting[-1]["id"]))
    if rows[0]["rows_read"] == rows_to_read:
        return MessagePage(messages, MessageCursor(rows[0]["last_moment"], rows[0]["last_id"]))
    return MessagePage(messages, None)


FIND_MESSAGES = f"""
select {_COLUMNS} from delayed_messages
 where id in (
    (select id from delayed_messages where message_id = $1 order by id limit $3)
    union
    (select id from delayed_messages where name = $1 order by id limit $3)
    union
    select id from delayed_messages where id = $2::bigint)
 order by due_at, id limit $3
"""  # noqa: S608


async def find_messages(
    connection: Connection, message_id: str, limit: int = MAX_MESSAGES_OF_ID
) -> list[ListedMessage]:
    """Return the messages that a command with this id means, up to `limit`, the first to be due first."""
    rows = await connection.fetch(FIND_MESSAGES, message_id, number_in(message_id), limit)
    return [_listed(row) for row in rows]


@dataclass(frozen=True, slots=True)
class MessageContent:
    """What a delayed message carries: flags and properties as bytes, as they will be published, and the body."""

    header: bytes
    body: bytes


READ_CONTENT = "select header, body from delayed_messages where id = $1"


async def read_content(connection: Connection, message: ListedMessage) -> MessageContent | None:
    """Return what the message carries, or None if it was published meanwhile."""
    row = await connection.fetchrow(READ_CONTENT, number_in(message.id))
    return None if row is None else MessageContent(row["header"], row["body"])


def _listed(row: object) -> ListedMessage:
    values = {name: row[name] for name in ListedMessage.__slots__}  # type: ignore[index]
    return ListedMessage(
        **{
            **values,
            "id": numbered_id(values["id"]),
            "exchange": exchange_label(values["exchange"]),
            "routing_key": routing_key_text(values["routing_key"]),
        }
    )
