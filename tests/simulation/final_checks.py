"""Checks at the end of a simulated history, when all work is done: every promise to the application must be kept. Of
the requests and cancels for an id the highest revision has won, and at the same revision the cancel.
"""

from collections.abc import Iterator
from operator import attrgetter

from tests.simulation.ledger import Ledger, PromiseBroken


def check_final_state(ledger: Ledger) -> None:
    if faults := [*_of_jobs(ledger), *_of_webhooks(ledger)]:
        raise PromiseBroken("; ".join(faults))


def _of_jobs(ledger: Ledger) -> Iterator[str]:
    rung = set(ledger.occurrences.values())
    for job_id in sorted({asked.id for asked in ledger.asked} | ledger.cancels.keys()):
        job = ledger.jobs.get(job_id)
        if job is None:
            yield f"{job_id} was confirmed to its application, and is lost"
            continue
        newest = max((asked for asked in ledger.asked if asked.id == job_id), key=attrgetter("revision"), default=None)
        closed = ledger.cancels.get(job_id, -1)
        highest = max(closed, newest.revision if newest else -1)
        if job["revision"] != highest:
            yield f"revision {highest} of {job_id} was lost: it is at {job['revision']}"
        if newest is not None and newest.revision > closed:
            if job["status"] != "done":
                yield f"{job_id} is {job['status']}, and no cancel closed revision {newest.revision}"
            yield from (f"{job_id} never rang for {one[1]}" for one in newest.occurrences if one not in rung)
        elif (
            job["status"] != "cancelled" and job_id not in ledger.lost_replies and not _said(ledger, job_id, "rejected")
        ):
            yield f"{job_id} was to be cancelled, is {job['status']}, and its application got no answer"
    wanted = {occurrence for asked in ledger.asked for occurrence in asked.occurrences}
    yield from (f"{occurrence} rang, and no request had asked for it" for occurrence in rung - wanted)


def _of_webhooks(ledger: Ledger) -> Iterator[str]:
    delivered = {row["idempotency_key"]: row["status"] for row in ledger.deliveries.values()}
    if len(delivered) != len(ledger.deliveries):
        yield "an occurrence has two deliveries"
    for key in ledger.webhooks:
        if key not in delivered:
            yield f"{ledger.occurrences[key]} rang, and its webhook was forgotten"
        elif delivered[key] == "COMPLETED" and key not in ledger.effects:
            yield f"{ledger.occurrences[key]} is COMPLETED, and its receiver knows nothing of it"
        elif key not in ledger.announced:
            yield f"how {ledger.occurrences[key]} ended was never announced"


def _said(ledger: Ledger, job_id: str, outcome: str) -> bool:
    return any((reply["id"], reply["outcome"]) == (job_id, outcome) for reply in ledger.replies)
