"""A few whole messages of each kind, for the documents. The tests send every command among them to the real consumer,
and compare every event with what is really published.
"""

from typing import Any

_KEY = "event-9b62f0e6a3c54d5eb1f0a7c2d8e94f13"
_ENDED = {
    "id": "invoice-42",
    "topic": "invoices.reminder",
    "sequence": 1,
    "due_at": "2026-07-10T09:00:00Z",
    "idempotency_key": _KEY,
}

EXAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    "ScheduleRequest": {
        "once, with a webhook": {
            "id": "invoice-42",
            "at": "2026-07-10T09:00:00Z",
            "topic": "invoices.reminder",
            "payload": {"invoice": 42},
            "labels": {"team": "billing", "env": "production"},
            "webhook": {"url": "https://example.com/hooks/invoices", "max_retries": 10, "secret": "billing"},
        },
        "at a local time": {"id": "dentist", "at": "2026-11-02T15:30:00", "timezone": "America/New_York"},
        "every weekday at nine": {
            "id": "standup",
            "cron": "0 9 * * 1-5",
            "timezone": "Europe/Berlin",
            "topic": "team.standup",
            "misfire": "skip",
            "misfire_grace_seconds": 300,
        },
        "the last day of the month": {
            "id": "payday",
            "rrule": "FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
            "start_at": "2026-01-31T08:00:00",
            "timezone": "Europe/Paris",
            "dst_gap": "shift",
            "dst_fold": "first",
        },
        "every ninety minutes": {"id": "poll", "every_seconds": 5400, "start_at": "2026-07-10T09:00:00Z"},
        "rescheduled": {"id": "invoice-42", "at": "2026-07-11T09:00:00Z", "revision": 2},
    },
    "ScheduleCancel": {"ring no more": {"id": "invoice-42"}},
    "SchedulePause": {"not for now": {"id": "standup"}},
    "ScheduleResume": {"go on": {"id": "standup"}},
    "ScheduleTrigger": {
        "once more, now": {"id": "standup", "trigger_id": "resend-2026-07-10", "payload": {"again": True}}
    },
    "ScheduleQuery": {"when is my next?": {"id": "standup", "history": 3, "upcoming": 2}},
    "ScheduleBulk": {
        "pause all of a team": {
            "id": "holidays-2026",
            "action": "pause",
            "selector": {"labels": {"team": "billing"}},
            "note": "holidays",
        },
        "how many would that be?": {
            "id": "count-1",
            "action": "cancel",
            "selector": {"topic": "invoices", "id_prefix": "invoice-"},
            "dry_run": True,
        },
    },
    "ScheduleReply": {
        "accepted": {
            "id": "standup",
            "outcome": "accepted",
            "next_run_at": "2026-07-10T07:00:00Z",
            "upcoming": ["2026-07-10T07:00:00Z", "2026-07-13T07:00:00Z", "2026-07-14T07:00:00Z"],
            "errors": [],
        },
        "rejected": {
            "id": "lift-off",
            "outcome": "rejected",
            "next_run_at": None,
            "upcoming": [],
            "errors": ["timezone: 'Mars/Olympus' is not an IANA time zone"],
        },
        "found": {
            "id": "standup",
            "outcome": "found",
            "next_run_at": "2026-07-13T07:00:00Z",
            "upcoming": ["2026-07-13T07:00:00Z", "2026-07-14T07:00:00Z"],
            "errors": [],
            "status": "pending",
            "revision": 1,
            "topic": "team.standup",
            "sequence": 1,
            "last_due_at": "2026-07-10T07:00:00Z",
            "labels": {"team": "web"},
            "history": [
                {
                    "at": "2026-07-10T07:00:00.004213Z",
                    "what": "fired",
                    "life": 1,
                    "sequence": 1,
                    "due_at": "2026-07-10T07:00:00Z",
                },
                {
                    "at": "2026-07-09T12:30:00.170125Z",
                    "what": "accepted",
                    "life": 1,
                    "revision": 1,
                    "due_at": "2026-07-10T07:00:00Z",
                    "app_id": "team-calendar",
                    "details": {"topic": "team.standup"},
                },
            ],
        },
        "finished": {
            "id": "holidays-2026",
            "outcome": "finished",
            "next_run_at": None,
            "upcoming": [],
            "errors": [],
            "bulk": {
                "action": "pause",
                "dry_run": False,
                "matched": 1200,
                "changed": 1180,
                "requested_at": "2026-07-10T09:00:00Z",
                "finished_at": "2026-07-10T09:00:02.170125Z",
            },
        },
    },
    "ScheduleDue": {
        "with a webhook": {
            "id": "invoice-42",
            "topic": "invoices.reminder",
            "sequence": 1,
            "due_at": "2026-07-10T09:00:00Z",
            "fired_at": "2026-07-10T09:00:00.004213Z",
            "idempotency_key": _KEY,
            "payload": {"invoice": 42},
            "webhook": {"url": "https://example.com/hooks/invoices"},
        },
    },
    "DeliveryCompleted": {"answered": {**_ENDED, "status": "COMPLETED", "attempts": 1, "reason": None}},
    "DeliveryFailed": {"given up": {**_ENDED, "status": "FAILED", "attempts": 4, "reason": "timeout"}},
}
