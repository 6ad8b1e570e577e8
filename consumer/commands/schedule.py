"""A request becomes a schedule: its moment, or its rule and the first occurrence of the rule. Pure."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice

import msgspec

from consumer.errors import Refusal
from shared.contract.fields import format_instant, parse_date_time, require_year_in_range
from shared.contract.history import UNNAMED, Origin
from shared.contract.labels import write_labels
from shared.contract.messages import Misfire, ScheduleRequest
from shared.recurrence import (
    BadRule,
    Occurrence,
    RuleSpec,
    compile_rule,
    dtstart_in,
    load_zone,
    resolve_local,
)

MAX_UPCOMING = 3


class Schedule(msgspec.Struct, frozen=True):
    """An accepted request with its first occurrence. (A struct, not a dataclass: thousands are made every second.)"""

    id: str
    revision: int
    topic: str
    payload: str | None  # JSON text, as it came
    webhook: str | None  # JSON text
    rule: RuleSpec | None
    rule_index: int
    misfire: Misfire
    misfire_grace_seconds: int
    next_run_at: datetime
    traceparent: str | None = None
    user: str | None = None
    origin: Origin = UNNAMED
    labels: str | None = None  # JSON text, by `write_labels`
    starts_when_made: bool = False  # the request left its start_at out: the rule starts when the request was made


def resolve(
    request: ScheduleRequest,
    payload: str | None,
    made_at: datetime,
    *,
    traceparent: str | None = None,
    user: str | None = None,
) -> Schedule:
    """Return the schedule of a request. Raises Refusal if its times or its rule make no sense."""
    rule, index = None, 1
    if request.at is not None:
        next_run_at = _instant_of(request.at, request)
    else:
        rule = _rule_spec(request, made_at)
        try:
            first = compile_rule(rule).first()
        except BadRule as error:
            raise _rule_refusal(error) from None
        if first is None:
            raise Refusal(f"{_rule_field(request)}: has no occurrence")
        next_run_at, index = first.at, first.index
    return Schedule(
        id=request.id,
        revision=request.revision,
        topic=request.topic,
        payload=payload,
        webhook=request.webhook.model_dump_json(exclude_none=True) if request.webhook else None,
        rule=rule,
        rule_index=index,
        misfire=request.misfire,
        misfire_grace_seconds=request.misfire_grace_seconds,
        next_run_at=next_run_at,
        traceparent=traceparent,
        user=user,
        labels=write_labels(request.labels) if request.labels else None,
        starts_when_made=request.starts_when_made,
    )


def list_upcoming(schedule: Schedule) -> list[datetime]:
    """Return the next few instants, for the reply: they show the author of a rule what the rule means."""
    return list(islice(upcoming(schedule.rule, schedule.next_run_at, schedule.rule_index), MAX_UPCOMING))


def upcoming(rule: RuleSpec | None, next_run_at: datetime, rule_index: int) -> Iterator[datetime]:
    """Yield the instants of a job, from its next one on. Each but the first may take a search."""
    yield next_run_at
    if rule is None:
        return
    occurrence = Occurrence(next_run_at, rule_index)
    with suppress(
        BadRule
    ):  # an occurrence beyond the reach of the search is left out; so is a rule's zone that is gone
        compiled = compile_rule(rule)
        while (after := compiled.next_after(occurrence)) is not None:
            occurrence = after
            yield after.at


def _instant_of(text: str, request: ScheduleRequest) -> datetime:
    moment = _date_time("at", text, request.timezone)
    if moment.tzinfo is not None:
        return moment
    instant = resolve_local(
        moment,
        load_zone(request.timezone or ""),
        request.dst_gap or "shift",
        "last" if request.dst_fold == "last" else "first",
    )
    if instant is None:
        raise Refusal(f"at: {text} does not exist in {request.timezone}, and dst_gap says skip")
    try:
        require_year_in_range(instant)
    except ValueError as error:
        raise Refusal(f"at: {error}") from None
    return instant


def _rule_spec(request: ScheduleRequest, made_at: datetime) -> RuleSpec:
    if request.start_at is None:
        start_at = format_instant(made_at)
        _require_zone(request.timezone)
    else:
        if request.rrule is not None and dtstart_in(request.rrule):
            raise Refusal("start_at: the rrule has a DTSTART of its own")
        _date_time("start_at", request.start_at, request.timezone)
        start_at = request.start_at
    return RuleSpec(
        start_at=start_at,
        timezone=request.timezone or "UTC",
        rrule=request.rrule,
        cron=request.cron,
        every_seconds=request.every_seconds,
        dst_gap=request.dst_gap,
        dst_fold=request.dst_fold,
    )


def _date_time(field: str, text: str, timezone: str | None) -> datetime:
    try:
        moment = parse_date_time(text)
    except ValueError as error:
        raise Refusal(f"{field}: {error}") from None
    _require_zone(timezone)
    if moment.tzinfo is None and timezone is None:
        raise Refusal(f"timezone: is needed, because {field} has no offset")
    return moment


def _require_zone(timezone: str | None) -> None:
    try:
        if timezone is not None:
            load_zone(timezone)
    except BadRule as error:
        raise _rule_refusal(error) from None


def _rule_refusal(error: BadRule) -> Refusal:
    """Begin the error with the field of the request: the recurrence engine names only the part, such as BYMONTHDAY."""
    text = str(error)
    return Refusal(text if text.startswith(f"{error.field}:") else f"{error.field}: {text}")


def _rule_field(request: ScheduleRequest) -> str:
    return "rrule" if request.rrule is not None else "cron" if request.cron is not None else "every_seconds"
