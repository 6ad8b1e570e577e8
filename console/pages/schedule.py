"""One schedule: why it has or has not fired, what comes next, what happened, and what can be done with it."""

from typing import Any

import orjson
from starlette.responses import Response

from console.acting import JOB_ACTIONS, act_on
from console.commands import Answer
from console.copying import as_command_line, as_json, as_python
from console.errors import PageFailure, not_found
from console.foretelling import rule_in_words, upcoming_of, webhook_url
from console.web.context import Visit
from console.web.forms import Form
from console.web.streams import LIST_SECONDS, live
from console.web.visitors import has_zone
from shared.reading.deliveries import DeliveryState, newest_deliveries, read_attempts
from shared.reading.jobs import Job, read_job
from shared.recurrence import RuleSpec
from shared.why.explain import explain
from shared.why.store import read_facts
from shared.why.timeline import describe_entry

DELIVERIES_SHOWN = 10
MAX_TIMELINE = 50


async def show(visit: Visit) -> Response:
    values = await _read(visit)
    status = 200 if values["job"] or values["entries"] else 404
    return visit.console.renderer.page("schedule.html", visit, status, **values)


async def stream(visit: Visit) -> Response:
    async def part(visit: Visit) -> str:
        return visit.console.renderer.text("schedule_live.html", visit, **await _read(visit))

    _id_of(visit)  # an address without an id is refused before the stream begins
    return live(visit, part, LIST_SECONDS)


async def act(visit: Visit, form: Form) -> Response:
    action = form.text("action")
    if action not in JOB_ACTIONS:
        raise PageFailure(400, "Nothing was sent", "There is no such action.")
    [verdict] = await act_on(visit, [_id_of(visit)], action, form.text("note"))
    return visit.console.renderer.page("schedule.html", visit, **{**await _read(visit), "verdict": verdict})


async def _read(visit: Visit) -> dict[str, Any]:
    job_id = _id_of(visit)
    async with visit.console.reading() as connection:
        facts = await read_facts(connection, job_id)
        job = await read_job(connection, job_id)
        deliveries = await newest_deliveries(connection, job_id, DELIVERIES_SHOWN)
        attempts = await read_attempts(connection, [one.id for one in deliveries])
    shown = facts if visit.user.sees_payloads else facts.without_answers()
    explanation = explain(shown, visit.zone, by_rules_clock=not has_zone(visit.request))
    verdict: Answer | None = None
    rule = RuleSpec.from_json(job.rule) if job and job.rule else None
    upcoming = upcoming_of(job, rule)
    path, name = PAGES_OF_CAUSES.get(explanation.cause.value, ("", ""))
    return {
        "job_id": job_id,
        "job": job,
        "rule": rule,
        "rule_words": rule_in_words(rule),
        "says": explanation.says,
        "to_do": explanation.to_do,
        "tone": TONES.get(explanation.cause.value, "info"),
        "upcoming": upcoming,
        "has_notes": any(one.note for one in upcoming),
        "leads_to": visit.console.renderer.url(path, job=job_id) if path else "",
        "leads_to_name": name,
        "entries": facts.entries[:MAX_TIMELINE],
        "more_entries": len(facts.entries) > MAX_TIMELINE,
        "describe_entry": describe_entry,
        "tone_of": lambda what: ENTRY_TONES.get(what, ""),
        "deliveries": deliveries,
        "attempts": attempts,
        "delivery_states": [one.value for one in DeliveryState],
        "copies": _copies(job, rule, sees_payloads=visit.user.sees_payloads),
        "verdict": verdict,
        "shown_url": webhook_url(job, whole=visit.user.sees_payloads),
        "live_url": visit.console.renderer.url("/schedule/live", id=job_id),
    }


# How the sentence on top is coloured, by its cause.
TONES = {
    **dict.fromkeys(("fired", "webhook_answered"), "good"),
    **dict.fromkeys(("not_yet", "replaced", "rule_ended", "webhook_waits", "bulk"), "info"),
    **dict.fromkeys(
        ("paused", "cancelled", "closed", "duplicate", "overtaken", "too_late", "misfire", "webhook_retries",
         "breaker_open", "never_heard", "forgotten"),
        "warn",
    ),
    **dict.fromkeys(
        ("rejected", "not_the_owner", "no_producer", "late", "refused", "rule_unreadable", "unrouted", "no_delivery",
         "webhook_failed", "forbidden_address", "secret_missing", "no_consumer"),
        "bad",
    ),
}  # fmt: skip
# Where to act on what the sentence tells.
PAGES_OF_CAUSES = {
    "unrouted": ("/unrouted", "To its unrouted events"),
    "rejected": ("/parked", "To its parked messages"),
    **dict.fromkeys(("webhook_failed", "forbidden_address", "secret_missing"), ("/deliveries", "To its deliveries")),
}
ENTRY_TONES = {
    **dict.fromkeys(("fired", "delivered"), "good"),
    **dict.fromkeys(("accepted", "rescheduled", "resumed", "triggered", "replayed"), "info"),
    **dict.fromkeys(("paused", "cancelled", "closed", "duplicate", "dropped"), "warn"),
    **dict.fromkeys(("rejected", "unrouted", "refused", "delivery_failed"), "bad"),
}


def _id_of(visit: Visit) -> str:
    job_id = visit.query.get("id", "")
    if not 1 <= len(job_id) <= 200 or "\0" in job_id:
        raise not_found("The address names no schedule.")
    return job_id


def _copies(job: Job | None, rule: RuleSpec | None, *, sees_payloads: bool) -> list[tuple[str, str]]:
    if job is None:
        return []
    content: dict[str, Any] = {"id": job.id}
    if rule is None:
        moment = job.next_run_at or job.last_due_at
        content["at"] = moment.isoformat().replace("+00:00", "Z") if moment else None
    else:
        content |= {name: value for name, value in orjson.loads(rule.to_json()).items() if value is not None}
    content["topic"] = job.topic
    if job.labels:
        content["labels"] = job.labels
    if job.misfire != "all":
        content |= {"misfire": job.misfire, "misfire_grace_seconds": job.misfire_grace_seconds}
    if job.webhook:
        shown = {**job.webhook, "url": webhook_url(job, whole=sees_payloads)}
        content["webhook"] = {name: value for name, value in shown.items() if value not in (None, {}, [])}
    payload = job.payload if sees_payloads else None
    return [
        ("Command line", as_command_line(content, payload)),
        ("Python", as_python(content, payload)),
        ("JSON", as_json(content, payload)),
    ]
