"""Checks at the end of a simulated history, when all work is done: every promise to the application must be kept."""

import json
from collections.abc import Iterator
from datetime import datetime

from tests.simulation.ledger import Asked, Ledger, PromiseBroken


def check_final_state(ledger: Ledger) -> None:
    if faults := [*_of_jobs(ledger), *_of_webhooks(ledger)]:
        raise PromiseBroken("; ".join(faults))


def _of_jobs(ledger: Ledger) -> Iterator[str]:
    rung = set(ledger.occurrences.values())
    for job_id in sorted({asked.id for asked in ledger.asked} | ledger.cancels):
        job = ledger.jobs.get(job_id)
        if job is None:
            yield f"{job_id} was confirmed to its application, and is lost"
        elif job_id not in ledger.cancels:
            yield from _missing(ledger, job_id, job["revision"], rung)
        elif (
            job["status"] != "cancelled" and job_id not in ledger.lost_replies and not _said(ledger, job_id, "rejected")
        ):
            yield f"{job_id} was to be cancelled, is {job['status']}, and its application got no answer"
    wanted = {(asked.id, at) for asked in ledger.asked for at in asked.occurrences}
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


def _missing(ledger: Ledger, job_id: str, revision: int, rung: set[tuple[str, datetime]]) -> list[str]:
    """Occurrences that never rang. The highest revision counts, unless it came too late and was parked."""
    requests = {asked.revision: asked for asked in ledger.asked if asked.id == job_id}
    newest = max(requests)
    if revision not in requests:
        return [f"{job_id} is at revision {revision}, which no request had"]
    faults = []
    if revision != newest and not _was_parked(ledger, requests[newest]):
        faults.append(f"revision {newest} of {job_id} was lost: it is at {revision}")
    faults += [f"{job_id} never rang for {at}" for at in requests[revision].occurrences if (job_id, at) not in rung]
    return faults


def _was_parked(ledger: Ledger, asked: Asked) -> bool:
    bodies = [json.loads(message.body) for message in ledger.parked]
    return any((body["id"], body.get("revision")) == (asked.id, asked.revision) for body in bodies)


def _said(ledger: Ledger, job_id: str, outcome: str) -> bool:
    return any((reply["id"], reply["outcome"]) == (job_id, outcome) for reply in ledger.replies)
