"""The operations that read: schedules, why, deliveries, bulks."""

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any

import orjson

from console.api.models import (
    Attempt,
    BulkState,
    Delivery,
    DeliveryPage,
    ListedDelivery,
    ListedSchedule,
    Occurrence,
    Schedule,
    SchedulePage,
    Why,
)
from console.api.operation import Call, Operation, Parameter, Reply
from console.errors import ApiFailure
from console.foretelling import rule_in_words, upcoming_of, webhook_url
from console.pages.schedules import MAX_ROWS_COUNTED_OF_PAGE, MAX_WALKS_OF_PAGE
from shared.contract.messages import HistoryEntry
from shared.reading.bulks import read_bulk
from shared.reading.deliveries import (
    DeliveriesWanted,
    DeliveryPlace,
    DeliveryState,
    list_deliveries,
    read_attempts,
    read_delivery,
)
from shared.reading.jobs import Cursor, JobState, Wanted, count_jobs, list_jobs, read_job
from shared.reading.rules import describe_rule
from shared.recurrence import RuleSpec
from shared.why.explain import explain
from shared.why.store import read_facts

MAX_ROWS_OF_ANSWER = 500
DEFAULT_ROWS = 50
MAX_ID = 2**63 - 1


async def list_schedules(call: Call) -> Reply:
    filters = call.filters
    wanted = Wanted(
        filters.read("state", JobState) or JobState.PENDING,
        filters.text("search"),
        filters.text("topic"),
        filters.moment("since"),
        filters.moment("until"),
        filters.labels("label"),
        filters.text("owner"),
    )
    after, limit = filters.place("after", Cursor.parse), _limit(call)
    _refuse(filters.problems)
    async with call.visit.console.reading() as connection:
        page = await list_jobs(connection, wanted, limit, after, walks=MAX_WALKS_OF_PAGE)
        count = await count_jobs(connection, wanted, MAX_ROWS_COUNTED_OF_PAGE)
    schedules = [
        ListedSchedule(
            **asdict(job), rule=describe_rule(job.rrule, job.cron, job.every_seconds, job.timezone, job.start_at)
        )
        for job in page.jobs
    ]
    following = str(page.next) if page.next else None
    return Reply(SchedulePage(schedules=schedules, next=following, count=count.jobs, more=count.more))


async def show_schedule(call: Call) -> Reply:
    job_id, sees_payloads = call.id(), call.visit.user.sees_payloads
    async with call.visit.console.reading() as connection:
        job = await read_job(connection, job_id)
    if job is None:
        raise ApiFailure(404, "id: there is no such schedule; /why may know more of the id")
    rule = RuleSpec.from_json(job.rule) if job.rule else None
    webhook = job.webhook and {**job.webhook, "url": webhook_url(job, whole=sees_payloads)}
    fields: dict[str, Any] = asdict(job) | {
        "rule": orjson.loads(job.rule) if job.rule else None,
        "rule_in_words": rule_in_words(rule),
        "webhook": webhook,
        "upcoming": [Occurrence.model_validate(one) for one in upcoming_of(job, rule)],
        "payload_is_hidden": not sees_payloads,
        "payload": None,
    }
    return Reply(Schedule(**fields), raw={"payload": job.payload} if sees_payloads and job.payload else {})


async def show_why(call: Call) -> Reply:
    async with call.visit.console.reading() as connection:
        facts = await read_facts(connection, call.id())
    explanation = explain(facts if call.visit.user.sees_payloads else facts.without_answers(), call.visit.zone)
    history = [HistoryEntry(**{**asdict(entry), "details": dict(entry.details) or None}) for entry in facts.entries]
    return Reply(
        Why(
            id=call.id(),
            cause=explanation.cause.value,
            says=explanation.says,
            to_do=explanation.to_do,
            history=history,
        )
    )


async def list_all_deliveries(call: Call) -> Reply:
    filters = call.filters
    wanted = DeliveriesWanted(
        filters.read("state", DeliveryState) or DeliveryState.FAILED,
        filters.text("job"),
        filters.text("host"),
        filters.text("topic"),
        filters.text("reason"),
    )
    after, limit = filters.place("after", DeliveryPlace.parse), _limit(call)
    _refuse(filters.problems)
    async with call.visit.console.reading() as connection:
        page = await list_deliveries(connection, wanted, limit, after)
    listed = [ListedDelivery.model_validate(one) for one in page.deliveries]
    return Reply(DeliveryPage(deliveries=listed, next=str(page.next) if page.next else None))


async def show_delivery(call: Call) -> Reply:
    text = call.visit.query.get("id", "")
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_ID)) and int(text) <= MAX_ID):
        raise ApiFailure(400, "id: must be the number of a delivery")
    async with call.visit.console.reading() as connection:
        delivery = await read_delivery(connection, int(text))
        if delivery is None:
            raise ApiFailure(404, "id: there is no such delivery; those that ended are kept for RETENTION_DAYS")
        attempts = (await read_attempts(connection, [delivery.id]))[delivery.id]
    hidden = {} if call.visit.user.sees_payloads else {"answer": None}
    shown = [Attempt(**{**asdict(one), **hidden}) for one in attempts]
    return Reply(Delivery(**asdict(delivery), attempts=shown))


async def show_bulk(call: Call) -> Reply:
    async with call.visit.console.reading() as connection:
        bulk = await read_bulk(connection, call.id())
    if bulk is None:
        raise ApiFailure(404, "id: there is no such bulk, or no consumer has taken it yet")
    return Reply(BulkState.model_validate(bulk))


def _limit(call: Call) -> int:
    text = call.visit.query.get("limit", str(DEFAULT_ROWS))
    if not (
        text.isascii()
        and text.isdigit()
        and len(text) <= len(str(MAX_ROWS_OF_ANSWER))
        and 1 <= int(text) <= MAX_ROWS_OF_ANSWER
    ):
        raise ApiFailure(400, f"limit: must be a whole number from 1 to {MAX_ROWS_OF_ANSWER}")
    return int(text)


def _one_of(states: type[StrEnum]) -> dict[str, Any]:
    return {"type": "string", "enum": [one.value for one in states]}


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise ApiFailure(400, *problems)


_ID = Parameter("id", "of the schedule", {"type": "string", "minLength": 1, "maxLength": 200}, is_required=True)
_TOPIC = Parameter("topic", "this topic, and those below it")
_AFTER = Parameter("after", "the `next` of the page before")
_ZONE = Parameter("timezone", "IANA name, of local times; missing: UTC", {"type": "string", "maxLength": 64})
_LIMIT = Parameter(
    "limit", "rows of a page", {"type": "integer", "minimum": 1, "maximum": MAX_ROWS_OF_ANSWER, "default": 50}
)

READING_OPERATIONS = (
    Operation(
        method="GET",
        path="/schedules",
        summary="List schedules, the next to ring first",
        handle=list_schedules,
        answers={200: SchedulePage},
        parameters=(
            Parameter("state", "which ones; missing: pending", _one_of(JobState)),
            Parameter("search", "any part of an id"),
            _TOPIC,
            Parameter("label", "key=value; several with commas between them"),
            Parameter("owner", "the AMQP user to whom they belong"),
            Parameter("since", "an instant, or a local time of `timezone`"),
            Parameter("until", "an instant, or a local time of `timezone`"),
            _ZONE, _AFTER, _LIMIT,
        ),
    ),
    Operation(
        method="GET",
        path="/schedule",
        summary="Show one schedule",
        handle=show_schedule,
        answers={200: Schedule},
        parameters=(_ID,),
        failures=(404,),
    ),
    Operation(
        method="GET",
        path="/why",
        summary="Say why a schedule has or has not rung",
        handle=show_why,
        answers={200: Why},
        parameters=(_ID, _ZONE),
    ),
    Operation(
        method="GET",
        path="/deliveries",
        summary="List webhook deliveries, those that failed last first",
        handle=list_all_deliveries,
        answers={200: DeliveryPage},
        parameters=(
            Parameter("state", "which ones; missing: failed", _one_of(DeliveryState)),
            Parameter("job", "the id of a schedule"),
            Parameter("host", "of the receiver"),
            _TOPIC,
            Parameter("reason", "the beginning of why it failed, such as http_404"),
            _AFTER, _LIMIT,
        ),
    ),
    Operation(
        method="GET",
        path="/delivery",
        summary="Show one delivery with its attempts",
        handle=show_delivery,
        answers={200: Delivery},
        parameters=(
            Parameter("id", "its number", {"type": "integer", "minimum": 0, "maximum": MAX_ID}, is_required=True),
        ),
        failures=(404,),
    ),
    Operation(
        method="GET",
        path="/bulk",
        summary="Show how an action on all that match stands",
        handle=show_bulk,
        answers={200: BulkState},
        parameters=(_ID,),
        failures=(404,),
    ),
)  # fmt: skip
