"""The list of schedules, the next to run first, and what can be done with several at once."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from console.acting import JOB_ACTIONS, act_on
from console.commands import Answer
from console.errors import PageFailure
from console.web.context import Visit
from console.web.forms import Form
from console.web.queries import Filters
from console.web.streams import LIST_SECONDS, live
from shared.contract.messages import Outcome
from shared.reading.jobs import Count, Cursor, JobState, ListedJob, Wanted, count_jobs, find_by_beginning, list_jobs
from shared.reading.rules import describe_rule

PAGE_JOBS = 50
MAX_CHOSEN = 200
# Fewer than the command line reads: a page has to be there at once.
MAX_WALKS_OF_PAGE = 2
MAX_ROWS_COUNTED_OF_PAGE = 10_001
MAX_LABELS_SHOWN = 3
STATES = (JobState.PENDING, JobState.REFUSED, JobState.PAUSED, JobState.DONE, JobState.CANCELLED, JobState.ALL)
FILTERS = ("search", "topic", "label", "owner", "since", "until")


async def show(visit: Visit) -> Response:
    return visit.console.renderer.page("schedules.html", visit, **await _read(visit))


async def stream(visit: Visit) -> Response:
    async def part(visit: Visit) -> str:
        return visit.console.renderer.text("schedules_live.html", visit, **await _read(visit))

    return live(visit, part, LIST_SECONDS)


async def act(visit: Visit, form: Form) -> Response:
    """Send one command for each chosen job."""
    chosen = list(dict.fromkeys(form.all("id")))
    if not chosen or len(chosen) > MAX_CHOSEN:
        raise PageFailure(400, "Nothing was sent", f"Choose schedules first, {MAX_CHOSEN} at most at a time.")
    action = form.text("action")
    if action not in JOB_ACTIONS:
        raise PageFailure(400, "Nothing was sent", "There is no such action.")
    verdicts = await act_on(visit, chosen, action, form.text("note"))
    counts = Counter("no answer yet" if one.outcome is None else one.outcome.value for one in verdicts)
    values = await _read(visit)
    return visit.console.renderer.page("schedules.html", visit, **{
        **values, "verdicts": _problems(verdicts), "counts": dict(counts), "all_good": all(v.is_good for v in verdicts),
    })  # fmt: skip


def _problems(verdicts: list[Answer]) -> list[Answer]:
    return [one for one in verdicts if not one.is_good or (one.outcome is Outcome.DUPLICATE and one.errors)]


async def _read(visit: Visit) -> dict[str, Any]:
    filters = Filters(visit.query, visit.zone)
    wanted = Wanted(
        filters.read("state", JobState) or JobState.PENDING,
        filters.text("search"),
        filters.text("topic"),
        filters.moment("since"),
        filters.moment("until"),
        filters.labels("label"),
        filters.text("owner"),
    )
    after = filters.place("after", Cursor.parse)
    async with visit.console.reading() as connection:
        page = await list_jobs(connection, wanted, PAGE_JOBS, after, walks=MAX_WALKS_OF_PAGE)
        count = await count_jobs(connection, wanted, MAX_ROWS_COUNTED_OF_PAGE)
        # A person who knows how an id begins finds it among any number of others.
        first = []
        if wanted.state is JobState.ALL and wanted.search is not None and after is None:
            first = await find_by_beginning(connection, wanted.search, PAGE_JOBS)
    kept = {name: visit.query.get(name, "") for name in FILTERS}
    return {
        "jobs": [*first, *(job for job in page.jobs if job.id not in {one.id for one in first})],
        "next": str(page.next) if page.next else None,
        "is_first": after is None,
        "count": _in_words(count),
        "state": wanted.state.value,
        "states": [one.value for one in STATES],
        "filters": kept,
        "problems": filters.problems,
        "rule_of": rule_of,
        "max_labels": MAX_LABELS_SHOWN,
        "all_that_match": words_of(selector_of(filters)),
        "live_url": live_url(visit, "/schedules/live"),
        "verdicts": [],
        "counts": {},
        "all_good": True,
    }


def selector_of(filters: Filters) -> dict[str, Any]:
    """Return how a bulk selects what the page filters. A text that is searched for is the beginning of ids."""
    given = {
        "labels": filters.labels("label") or None,
        "topic": filters.text("topic"),
        "id_prefix": filters.text("search"),
    }
    return {name: value for name, value in given.items() if value is not None}


def words_of(selector: Mapping[str, Any]) -> str:
    """Say which schedules a selector means."""
    labels = [f"{key}={value}" for key, value in selector.get("labels", {}).items()]
    topic = [f"topic {selector['topic']} and those below"] if selector.get("topic") else []
    begins = [f"ids that begin with {selector['id_prefix']}"] if selector.get("id_prefix") else []
    return ", ".join([*labels, *topic, *begins])


def live_url(visit: Visit, path: str) -> str:
    return visit.console.renderer.url(path, **visit.request.query_params)


def rule_of(job: ListedJob) -> str:
    return describe_rule(job.rrule, job.cron, job.every_seconds, job.timezone, job.start_at)


def _in_words(count: Count) -> str:
    return f"{count.jobs:,}{'+' if count.more else ''}"
