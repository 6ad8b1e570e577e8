"""What each log event says, in the order in which the page shows them. A test fails when an event has no sentence, or a
sentence no event.
"""

# Events whose name is put together while the service runs: what they begin with, and all of them.
FAMILIES = {"breaker_": ("breaker_opened", "breaker_closed")}

SENTENCES = {
    "broker_connected": "The service is connected to the broker.",
    "broker_not_ready": "The broker cannot be used: `problem` says why. The service tries again.",
    "database_not_ready": "The database cannot be used, or its schema is old: `problem` says why. It is tried again.",
    "consuming": "The service reads from a queue.",
    "inbox_lost": "The queue or its connection was lost. What was not acknowledged comes again.",
    "batch_waits": "A batch waits for a store to come back. Nothing is lost.",
    "batch_split": "One row made a batch fail. Its members are tried one by one.",
    "polling_only": "There is a pooler before the database, and no `DATABASE_DIRECT_URL`: the producer cannot listen "
    "for new jobs, and looks for them every `poll_seconds`.",
    "lane_waits": "A lane of the producer waits for a store to come back. Nothing is lost.",
    "dispatch_waits": "Delivery claims nothing until the database is back. Nothing is lost.",
    "recording_waits": "Outcomes of calls wait in memory for the database to come back.",
    "announcing_waits": "Outcome events wait in their table for a store to come back.",
    "bulks_wait": "A bulk waits for a store to come back. It goes on from where it is.",
    "bulk_split": "One job made a step of a bulk fail. The next is tried alone.",
    "bulk_passes_over_a_job": "Postgres refused what a bulk would do with a job. The bulk leaves that job.",
    "retention_waits": "Old rows are deleted later, when the database is back.",
    "sampling_waits": "The sampled metrics are looked up later, when the database is back.",
    "upkeep_waits": "Partitions of the history are made and dropped later, when the database is back.",
    "instance_not_written": "The process could not write into `service_instances` that it runs. It goes on.",
    "command_rejected": "A command was refused: `errors` says why, `parked` whether it is in `scheduler.parked`.",
    "command_unreadable": "A bug worth a report: reading a command failed in an unforeseen way. It is parked.",
    "replies_not_confirmed": "The broker did not take some replies. Their commands are stored.",
    "recovery": "At the start: how much is overdue or open, the oldest and the newest of it.",
    "fired_late": "An occurrence was published more than a minute after its moment, and why it was late. The first ten "
    "after a quiet time have a line each.",
    "fired_late_summary": "Further occurrences of the last ten seconds were published late: how many, why, the oldest, "
    "and by how much at most.",
    "misfire_dropped": "Late occurrences were dropped by the job's own policy. The first ten jobs after a quiet time "
    "have a line each.",
    "misfire_dropped_summary": "The same of further jobs in the last ten seconds: how many, by policy.",
    "delayed_parked": "Delayed messages could not be held: `error` says why. They are in `scheduler.parked`.",
    "delayed_unreadable": "A bug worth a report: reading a delayed message failed in an unforeseen way. It is parked.",
    "delayed_refused": "The broker does not take delayed messages to an exchange: `reason` says why. They are kept and "
    "tried again.",
    "delayed_late": "Delayed messages of a claim were published more than a minute after their moment.",
    "not_published": "Events of a claim were not confirmed: how many, the publish results, and one of them. They are "
    "tried again.",
    "unrouted": "No queue was bound for some events of a claim: how many, and one of them. They are in "
    "`scheduler.unrouted`.",
    "rule_cut_short": "A rule has ended only because its next occurrence, if there is one, is further away than a "
    "search goes. The job is done.",
    "rule_unreadable": "A stored rule can no longer be read, because a time zone is gone, say. The job is tried later.",
    "deliveries_replayed": "The console asked for failed deliveries to be tried again; so many had no replay yet.",
    "event_parked": "Delivery could not understand an event. It is in `scheduler.parked`.",
    "event_unreadable": "A bug worth a report: reading an event failed in an unforeseen way. It is parked.",
    "duplicate_dropped": "An event came again, and its delivery is known.",
    "delivered": "A webhook answered with a 2xx.",
    "delivered_late": "A webhook was delivered more than a minute after its moment. The first ten after a quiet time "
    "have a line each.",
    "delivered_late_summary": "Further webhooks of the last ten seconds were delivered late: how many, why, the oldest "
    "of them, and by how much at most.",
    "delivery_retry": "A call is to be repeated: why, and when.",
    "delivery_failed": "A delivery was given up, and why.",
    "breaker_opened": "A host keeps failing and is not called for a while.",
    "breaker_closed": "The host answers and is called again.",
    "lease_lost": "A result was dropped, because another process had taken over the delivery.",
    "given_back": "A lease was ended early without a call: at a stop, or because the host became slow or fails.",
    "outcome_not_announced": "The broker did not take an outcome event. It is tried again.",
    "call_failed_unexpectedly": "A bug worth a report: a call failed in an unforeseen way. It is repeated.",
    "record_refused": "A bug worth a report: Postgres refused the outcome of a call. The delivery is tried again.",
    "observing_failed": "A bug worth a report: an outcome is recorded, and was not counted or logged.",
    "secrets_file_unreadable": "The file of signing secrets cannot be read. Those read before are used. Said once a "
    "minute.",
    "secrets_file_readable": "The file of signing secrets can be read again.",
    "command_not_sent": "A command of a visitor of the console was not sent: RabbitMQ did not take it.",
    "kept_messages_handled": "A visitor of the console, the `operator`, sent kept messages again, or dropped them.",
    "page_not_read": "A page of the console could not be read from the database. Its reader is told.",
    "page_failed": "A bug worth a report: a page of the console could not be made.",
    "stopping": "A signal came. The service takes no more work and finishes what it has.",
    "stopped": "The service has ended in good order.",
    "abandoned": "The service ended with work under way: the grace time was over, or a second signal came.",
    "cannot_start": "Only an operator can mend it: `problem` says what.",
    "died": "A bug worth a report: which loop died, and of what. The process ends.",
}
