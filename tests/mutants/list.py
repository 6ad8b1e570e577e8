"""The mutants. Text instead of line numbers: where the code has moved or was reworded, `before` and `after` follow it.

A new one is worth its place if a developer could make the mistake, if a user would suffer from it, and if one test is
clearly the one that must notice. Of two tests that notice, the quicker one is named.
"""

from tests.mutants.delayed import DELAYED
from tests.mutants.mutant import Mutant

_CONSUMER = (
    Mutant(
        name="ack-before-park",
        harm="A refused command is lost if the broker does not take the parked copy.",
        file="consumer/handler.py",
        before="""
        await self._park(messages, answers)
        await self._reply(messages, answers)
        reached(Point.CONSUMER_ANSWERED)
        await inbox.acknowledge(messages)
""",
        after="""
        await inbox.acknowledge(messages)
        await self._park(messages, answers)
        await self._reply(messages, answers)
        reached(Point.CONSUMER_ANSWERED)
""",
        tests=("tests/integration/test_redelivery.py::test_a_command_that_cannot_be_parked_goes_back",),
    ),
    Mutant(
        name="any-target-for-masstransit",
        harm="An application that may use MassTransit's exchange reaches all that the producer may write to.",
        file="consumer/delayed.py",
        before="and each.must_be_open and each.exchange in closed",
        after="and each.must_be_open and not each.exchange",
        tests=(
            "tests/integration/test_masstransit.py::"
            "test_a_scheduled_message_reaches_its_open_destination_and_a_cancelled_one_does_not",
        ),
    ),
    Mutant(
        name="stranger-reschedules",
        harm="Every user of the broker can reschedule and cancel the jobs of all others.",
        file="consumer/store/jobs.py",
        before="and (jobs.owner is null or jobs.owner = excluded.owner or excluded.owner = any($14::text[]))",
        after="and $14::text[] is not null",
        tests=("tests/integration/test_owners.py::test_a_job_obeys_its_owner_and_no_other_user",),
    ),
    Mutant(
        name="bulk-of-a-stranger",
        harm="A user of the broker cancels the jobs of all others that have a label.",
        file="consumer/store/bulk_walk.py",
        before="and ($3 or owner is null or owner = $2)",
        after="and ($3 or true or owner = $2)",
        tests=(
            "tests/integration/bulks/test_steps.py::test_a_bulk_changes_the_open_jobs_that_match_and_that_its_user_may_command",
        ),
    ),
    Mutant(
        name="bulk-passes-over-what-is-firing",
        harm="A bulk leaves out the jobs that a producer is publishing at that moment.",
        file="consumer/bulks.py",
        before="        if job.id not in free:",
        after="        if job.id not in free and number < 0:",
        tests=("tests/integration/bulks/test_steps.py::test_a_step_waits_for_no_job_while_it_has_others_locked",),
    ),
    Mutant(
        name="bulk-begins-again",
        harm="A bulk that a crash has interrupted counts and tells jobs twice, or never ends.",
        file="consumer/store/bulks.py",
        before="       after_id = $3,\n",
        after="       after_id = case when steps % 2 = 0 then $3 else after_id end,\n",
        tests=("tests/integration/bulks/test_steps.py::test_a_bulk_that_is_interrupted_ends_as_one_that_is_not",),
    ),
    Mutant(
        name="bulk-takes-what-came-later",
        harm="A bulk cancels schedules that were made after it was sent.",
        file="consumer/store/bulk_walk.py",
        before="created_at <= $1 and",
        after="created_at is not null and",
        tests=(
            "tests/integration/bulks/test_steps.py::test_a_bulk_changes_the_open_jobs_that_match_and_that_its_user_may_command",
        ),
    ),
    Mutant(
        name="dry-run-changes",
        harm="A dry run changes what it should only count.",
        file="consumer/bulks.py",
        before="        if bulk.stored.dry_run:\n            return sum(",
        after="        if bulk.stored.dry_run and not part.jobs:\n            return sum(",
        tests=(
            "tests/integration/bulks/test_bulk_commands.py::test_a_bulk_is_answered_when_it_is_finished_and_can_be_asked_for",
        ),
    ),
    Mutant(
        name="older-revision-wins",
        harm="A request that was overtaken on its way undoes the reschedule that overtook it.",
        file="consumer/store/jobs.py",
        before="where excluded.revision > {CLOSED_REVISION}",
        after="where excluded.revision <> {CLOSED_REVISION}",
        tests=("tests/integration/test_consumer.py::test_a_higher_revision_reschedules_and_a_lower_one_does_not",),
    ),
    Mutant(
        name="oldest-of-a-batch-wins",
        harm="Of two revisions that arrive together, the job keeps the older one.",
        file="consumer/commands/merge.py",
        before="if request.revision > other.revision:",
        after="if request.revision < other.revision:",
        tests=("tests/unit/test_merge.py::test_the_highest_revision_wins_in_every_order",),
    ),
    Mutant(
        name="same-revision-again",
        harm="A request that is delivered twice begins a rule anew, and one for an ended id is refused and parked.",
        file="consumer/store/jobs.py",
        before="where excluded.revision > {CLOSED_REVISION}",
        after="where excluded.revision >= {CLOSED_REVISION}",
        tests=(
            "tests/integration/test_consumer.py::test_the_same_command_again_changes_nothing",
            "tests/integration/test_lives.py::test_a_late_request_of_a_closed_revision_stays_out",
        ),
    ),
    Mutant(
        name="cancel-ignores-its-revision",
        harm="A cancel that comes again, or late, ends a life that began after it was sent.",
        file="consumer/commands/cancel.py",
        before="if is_open and cancel.revision is not None and cancel.revision < job.revision:",
        after="if is_open and cancel.revision is not None and cancel.revision < 0:",
        tests=("tests/unit/test_cancelling.py::test_an_older_cancel_leaves_a_job_of_a_later_revision_alone",),
    ),
    Mutant(
        name="change-without-its-history",
        harm="A job is changed by a transaction that the history is not in, and no entry ever tells of it.",
        file="consumer/handler.py",
        before="""
            await add_entries(connection, tell_requests(requests, answers, jobs), self.history)
""",
        after="""
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as other:
            await add_entries(other, tell_requests(requests, answers, jobs), self.history)
""",
        tests=("tests/integration/test_history.py::test_a_change_that_the_history_cannot_tell_is_not_made",),
    ),
    Mutant(
        name="cancel-of-a-misspelt-id",
        harm="A cancel of an id that Duebell does not know is answered as if the job had been cancelled.",
        file="consumer/commands/cancel.py",
        before="return Answer(cancel.id, Outcome.UNKNOWN, errors=(unknown,), changed=True)",
        after="return Answer(cancel.id, Outcome.CANCELLED, errors=(unknown,), changed=True)",
        tests=(
            "tests/unit/test_cancelling.py::test_a_cancel_of_an_unknown_id_says_so_and_the_next_one_finds_it_cancelled",
        ),
    ),
    Mutant(
        name="mark-counts-as-a-life",
        harm="An id that was cancelled before its first request has other keys than its receiver can work out.",
        file="consumer/store/jobs.py",
        before="select m.id, 'cancelled', m.revision, m.owner, 0, 'default', 'all', 0, now()",
        after="select m.id, 'cancelled', m.revision, m.owner, 1, 'default', 'all', 0, now()",
        tests=("tests/integration/test_lives.py::test_the_life_after_a_mark_is_the_first_one",),
    ),
    Mutant(
        name="new-life-keeps-its-count",
        harm="The sequence of a new life goes on where the last one ended, and its events seem to be missing some.",
        file="consumer/store/jobs.py",
        before="select 'pending', jobs.life + 1, 0, null,",
        after="select 'pending', jobs.life + 1, jobs.sequence, null,",
        tests=(
            "tests/integration/test_lives.py::test_a_new_life_begins_in_the_same_row_with_everything_of_its_request",
        ),
    ),
    Mutant(
        name="resume-wakes-no-producer",
        harm="A job that is resumed when it is overdue waits for the next poll instead of ringing at once.",
        file="consumer/store/pause_and_trigger.py",
        before="""    if any(row["due_soon"] for row in changed):
        await wake_producers.notify(connection)
    elif""",
        after="    if",
        tests=("tests/integration/test_pausing.py::test_a_paused_job_does_not_fire_until_it_is_resumed",),
    ),
)

_PRODUCER = (
    Mutant(
        name="misfire-latest-ignored",
        harm="After a downtime a job that asked for the latest occurrence alone rings all that it missed.",
        file="producer/decisions/plan.py",
        before="if job.misfire is Misfire.ALL or start.at >= misfired_before:",
        after="if job.misfire is not Misfire.SKIP or start.at >= misfired_before:",
        tests=("tests/unit/test_plan.py::test_under_latest_only_the_last_late_occurrence_is_published",),
    ),
    Mutant(
        name="burst-without-bound",
        harm="One rule that is a year behind publishes all of it in a single transaction, and the others wait.",
        file="producer/decisions/plan.py",
        before=" and len(due) < MAX_TURN_OCCURRENCES and not is_out_of_time():",
        after=" and not is_out_of_time():",
        tests=("tests/unit/test_plan.py::test_a_long_catch_up_takes_turns",),
    ),
    Mutant(
        name="refusal-counts-as-ring",
        harm="An event that the broker refused is taken for published, and never comes.",
        file="producer/decisions/settle.py",
        before="if result not in PUBLISHED), len(results))",
        after="if result is PublishResult.UNKNOWN), len(results))",
        tests=(
            "tests/unit/test_settle.py::test_a_refused_one_shot_keeps_its_moment_and_waits",
            "tests/unit/test_settle.py::test_a_rule_waits_for_its_first_occurrence_that_was_not_confirmed",
        ),
    ),
    Mutant(
        name="refusals-pause-without-cap",
        harm="A job whose queue was full for an hour is tried again days later.",
        file="shared/runtime/backoff.py",
        before="return min(MAX_REFUSAL_PAUSE, FIRST_REFUSAL_PAUSE * doubled)",
        after="return FIRST_REFUSAL_PAUSE * doubled",
        tests=("tests/unit/test_backoff.py::test_the_pause_after_refusals_doubles_up_to_five_minutes",),
    ),
    Mutant(
        name="key-of-the-publish",
        harm="An occurrence that is published twice after a crash carries two keys, and is handled twice.",
        file="producer/decisions/due_event.py",
        before="key = idempotency_key(job.id, due_at, job.topic, job.trigger_id, job.life)",
        after="key = idempotency_key(job.id, _format_fired_at(fired_at), job.topic, job.trigger_id, job.life)",
        tests=("tests/unit/test_due_event.py::test_an_occurrence_that_is_published_again_has_the_same_key",),
    ),
    Mutant(
        name="every-life-is-claimed-as-the-first",
        harm="An id that is used again for the same moment has the keys of its first life: receivers skip what rings.",
        file="producer/store/lanes.py",
        before="null as trigger_id, life, rule is null",
        after="null as trigger_id, 1 as life, rule is null",
        tests=("tests/integration/test_lives.py::test_each_life_of_an_id_is_fired_with_keys_and_numbers_of_its_own",),
    ),
    Mutant(
        name="paused-job-rings",
        harm="A job that was paused rings all the same.",
        file="producer/store/lanes.py",
        before=' where status = \'pending\'"""',
        after=" where status in ('pending', 'paused')\"\"\"",
        tests=("tests/integration/test_pausing.py::test_a_paused_job_does_not_fire_until_it_is_resumed",),
    ),
    Mutant(
        name="claim-without-lock",
        harm="Two producers publish the same occurrence, each time.",
        file="producer/store/lanes.py",
        before="""
   and next_run_at <= coalesce($1::timestamptz, now())
 order by next_run_at limit $2 for no key update skip locked
""",
        after="""
   and next_run_at <= coalesce($1::timestamptz, now())
 order by next_run_at limit $2
""",
        tests=("tests/integration/test_claiming.py::test_ten_due_rows_and_three_claimers_at_once",),
    ),
    Mutant(
        name="retention-of-open-jobs",
        harm="A job that is paused for longer than ended ones are kept is deleted.",
        file="producer/store/retention.py",
        before="status <> 'pending' and finished_at < now() - $1::interval",
        after="status <> 'pending' and coalesce(finished_at, updated_at) < now() - $1::interval",
        tests=("tests/integration/test_retention.py::test_a_job_that_is_open_is_kept_however_old_it_is",),
    ),
    Mutant(
        name="trigger-of-cancelled-job-rings",
        harm="A trigger rings after its job was cancelled, and the cancel confirmed.",
        file="producer/store/triggers.py",
        before="""
  from due
 where status <> 'cancelled'
""",
        after="""
  from due
""",
        tests=(
            "tests/integration/test_triggers.py::test_a_cancel_drops_triggers_that_were_not_fired_and_a_done_job_keeps_them",
        ),
    ),
)

_DELIVERY = (
    Mutant(
        name="duplicate-does-not-wait-for-the-standby",
        harm="An event is acknowledged whose delivery is lost with the primary.",
        file="delivery/store/new.py",
        before="case when count(*) = 0 then pg_logical_emit_message(true, 'duebell', '') end",
        after="null",
        tests=(
            "tests/acceptance/test_failover.py"
            "::test_an_event_whose_delivery_the_standby_does_not_have_is_not_stored_yet",
        ),
    ),
    Mutant(
        name="retries-without-end",
        harm="A receiver that keeps failing is called for ever, and the application never hears that it failed.",
        file="delivery/attempt/retry.py",
        before="if state.retry_count >= state.max_retries:",
        after="if state.max_retries == 0:",
        tests=("tests/unit/delivery/test_retry.py::test_these_statuses_are_retried_until_the_retries_are_used_up",),
    ),
    Mutant(
        name="retries-without-jitter",
        harm="All deliveries that failed together come back together, and knock the receiver over again.",
        file="delivery/attempt/retry.py",
        before="return longest * (1 + chance) / 2",
        after="return longest",
        tests=("tests/unit/delivery/test_retry.py::test_half_of_a_pause_is_random_and_the_pause_has_a_cap",),
    ),
    Mutant(
        name="redirect-counts-as-delivered",
        harm="A webhook that has moved is told to be delivered, and its receiver never sees it.",
        file="delivery/attempt/retry.py",
        before="if 200 <= status < 300:",
        after="if 200 <= status < 400:",
        tests=("tests/unit/delivery/test_retry.py::test_other_4xx_and_redirects_fail_at_once",),
    ),
    Mutant(
        name="signature-of-the-payload",
        harm="No receiver can verify a signature: it is made over other bytes than those that are sent.",
        file="delivery/http/request.py",
        before="headers |= signature_headers(signers, delivery.idempotency_key, body, now)",
        after='headers |= signature_headers(signers, delivery.idempotency_key, (delivery.payload or "").encode(), now)',
        tests=("tests/unit/delivery/test_request.py::test_the_signature_is_of_the_very_body_that_is_sent",),
    ),
    Mutant(
        name="old-secret-forgotten",
        harm="While a secret is rotated, receivers that still have the old one refuse every call.",
        file="delivery/attempt/signing.py",
        before="signer.sign(key, now, text) for signer in signers)",
        after="signer.sign(key, now, text) for signer in signers[:1])",
        tests=("tests/unit/delivery/test_signing.py::test_while_a_secret_is_rotated_the_old_and_the_new_one_verify",),
    ),
    Mutant(
        name="only-the-first-address-checked",
        harm="A name with a public address and an inner one leads a webhook into the operator's network.",
        file="delivery/http/resolver.py",
        before="for info in looked_up.infos:",
        after="for info in looked_up.infos[:1]:",
        tests=("tests/unit/delivery/test_resolving.py::test_one_forbidden_address_is_enough_wherever_it_stands",),
    ),
    Mutant(
        name="breaker-never-opens",
        harm="A receiver that is down is called without a pause, by every delivery that waits for it.",
        file="delivery/dispatch/circuit_breaker.py",
        before="failures = breaker.failures + 1\n",
        after="failures = breaker.failures\n",
        tests=("tests/unit/delivery/test_breaker.py::test_so_many_failures_in_a_row_open_it",),
    ),
    Mutant(
        name="probe-of-all",
        harm="When its pause is over, a receiver that just came back gets everything at once instead of one call.",
        file="delivery/dispatch/circuit_breaker.py",
        before="return 0 if now < self.open_until else 1",
        after="return 0 if now < self.open_until else limit",
        tests=("tests/unit/delivery/test_breaker.py::test_when_the_pause_is_over_one_call_is_let_through",),
    ),
    Mutant(
        name="breaker-pause-does-not-grow",
        harm="A receiver that is down for days is probed every few seconds.",
        file="delivery/dispatch/circuit_breaker.py",
        before="pause = min(policy.longest_pause, 2 * breaker.pause)",
        after="pause = min(policy.longest_pause, breaker.pause)",
        tests=("tests/unit/delivery/test_breaker.py::test_a_probe_that_fails_doubles_the_pause_up_to_its_limit",),
    ),
    Mutant(
        name="lease-never-checked",
        harm="A process that stood still calls a webhook whose delivery another replica has taken over meanwhile.",
        file="delivery/attempt/runner.py",
        before="if started - leased.leased_at > self.lease_margin:",
        after="if started < leased.leased_at:",
        tests=("tests/unit/delivery/test_attempt.py::test_a_lease_that_may_end_during_the_call_is_not_used",),
    ),
    Mutant(
        name="lost-lease-records",
        harm="A worker that lost its lease writes its outcome over that of the worker that has it now.",
        file="delivery/store/results.py",
        before="where d.id = o.id and d.version = o.version and d.status = 'PROCESSING'",
        after="where d.id = o.id and d.status = 'PROCESSING'",
        tests=("tests/integration/delivery/test_claiming.py::test_a_worker_that_lost_its_lease_records_nothing",),
    ),
    Mutant(
        name="unannounced-outcome-deleted",
        harm="Retention deletes a delivery before the application has heard how it ended.",
        file="delivery/store/retention.py",
        before="       and not exists (select from delivery_announcements a where a.delivery_id = d.id)\n",
        after="",
        tests=(
            "tests/integration/delivery/test_claiming.py::test_retention_deletes_what_ended_long_ago_and_was_announced",
        ),
    ),
    Mutant(
        name="unconfirmed-outcome-forgotten",
        harm="An application never hears how a delivery ended, because the broker gave no answer just then.",
        file="delivery/results/announcer.py",
        before="[one.delivery_id for one, result in published if result is PublishResult.CONFIRMED],",
        after="[one.delivery_id for one, result in published if result in (PublishResult.CONFIRMED, 'unknown')],",
        tests=(
            "tests/integration/delivery/test_announcing.py::test_what_the_broker_gave_no_verdict_on_is_announced_again",
        ),
    ),
)

_SHARED = (
    Mutant(
        name="old-primary-is-used",
        harm="What a process writes to a primary that was replaced is lost.",
        file="shared/postgres/database.py",
        before="""if found["number"] < newest:""",
        after="""if found["number"] < 0:""",
        tests=("tests/acceptance/test_failover.py::test_a_standby_is_not_used_until_it_is_promoted",),
    ),
    Mutant(
        name="sessions-of-a-silent-host-stay",
        harm="After a failover each session waits half a minute for the old primary.",
        file="shared/postgres/database.py",
        before="            session.terminate()\n        self._sessions.clear()",
        after="            pass\n        self._sessions.clear()",
        tests=(
            "tests/integration/test_several_hosts.py"
            "::test_all_sessions_on_a_host_that_went_silent_end_when_one_finds_another_host",
        ),
    ),
    Mutant(
        name="key-without-life",
        harm="An id that is used again for the same moment has the key of its last life: receivers skip what rings.",
        file="shared/contract/fields.py",
        before="    if life > 1:",
        after="    if life > 1_000_000:",
        tests=(
            "tests/unit/test_idempotency.py::test_the_key_of_a_later_life_has_the_place_of_the_trigger_and_the_life",
        ),
    ),
    Mutant(
        name="ack-before-commit",
        harm="A command is lost if the database does not take it.",
        file="shared/amqp/consuming.py",
        before="    stored = await _until_done(lambda: handler.store(batch), inbox, stop)\n",
        after="    await inbox.acknowledge(batch)\n"
        "    stored = await _until_done(lambda: handler.store(batch), inbox, stop)\n",
        tests=("tests/integration/test_redelivery.py::test_a_command_that_cannot_be_stored_goes_back",),
    ),
    Mutant(
        name="stop-acks-what-is-not-stored",
        harm="A consumer that is stopped while the database is away loses the commands that it had taken.",
        file="shared/amqp/consuming.py",
        before="    if stored is not None:\n",
        after="    if stored is None:\n        await inbox.acknowledge(batch)\n    if stored is not None:\n",
        tests=("tests/integration/test_redelivery.py::test_a_command_that_cannot_be_stored_goes_back",),
    ),
    Mutant(
        name="nack-counts-as-confirm",
        harm="An event that a full queue refused is taken for published, and never comes.",
        file="shared/amqp/wire/publishing.py",
        before="self._confirm(PublishResult.NACKED, data, payload)",
        after="self._confirm(PublishResult.CONFIRMED, data, payload)",
        tests=("tests/integration/test_publishing.py::test_what_cannot_be_written_shifts_no_result",),
    ),
    Mutant(
        name="return-counts-as-confirm",
        harm="An event that no queue took is taken for published, and never comes.",
        file="shared/amqp/wire/publishing.py",
        before="self._answer(place, place + 1, PublishResult.RETURNED)",
        after="self._answer(place, place + 1, PublishResult.CONFIRMED)",
        tests=("tests/integration/test_publishing.py::test_what_no_queue_takes_is_returned_and_not_confirmed",),
    ),
    Mutant(
        name="silence-counts-as-confirm",
        harm="An event that the broker never confirmed is taken for published, and is lost with the broker.",
        file="shared/amqp/publisher.py",
        before="unanswered = PublishResult.CLOSED if closed_by_broker else PublishResult.UNKNOWN",
        after="unanswered = PublishResult.CLOSED if closed_by_broker else PublishResult.CONFIRMED",
        tests=("tests/integration/test_publishing.py::test_what_the_broker_does_not_answer_to_is_unknown",),
    ),
    Mutant(
        name="parked-without-body",
        harm="A refused command is parked without what it said, and cannot be sent again.",
        file="shared/amqp/message.py",
        before="        body=message.body,\n",
        after='        body=b"",\n',
        tests=("tests/unit/test_parked_headers.py::test_a_parked_message_has_the_body_that_arrived",),
    ),
    Mutant(
        name="row-in-a-log-line",
        harm="A payload that Postgres refuses is written to the log, secrets and all.",
        file="shared/postgres/errors.py",
        before="says = error.args[0] if isinstance(error, asyncpg.PostgresError) and error.args else error",
        after="says: object = error",
        tests=("tests/integration/test_errors_in_words.py::test_an_error_about_a_value_does_not_quote_it",),
    ),
    Mutant(
        name="password-in-settings",
        harm="Whatever shows the settings, a log line or a traceback, shows the password of the database.",
        file="shared/runtime/settings.py",
        before='repr=False, description="where Postgres is,',
        after='description="where Postgres is,',
        tests=("tests/unit/test_settings.py::test_settings_show_no_password_and_no_secret",),
    ),
    Mutant(
        name="commit-that-is-not-durable",
        harm="What was acknowledged is lost in a crash of a Postgres that does not wait for its disk by default.",
        file="shared/postgres/pool.py",
        before='"synchronous_commit": "on",',
        after="",
        tests=("tests/integration/test_sessions.py::test_a_commit_is_durable_whatever_the_servers_default_is",),
    ),
    Mutant(
        name="migration-without-lock-timeout",
        harm="A migration that waits for a table makes every service wait behind it, for as long as that takes.",
        file="shared/postgres/migrate.py",
        before="await connection.execute(f\"set local lock_timeout = '{LOCK_TIMEOUT}'\")",
        after='await connection.execute("set local lock_timeout = 0")',
        tests=("tests/integration/test_schema.py::test_no_query_waits_behind_a_migration_that_waits_for_a_table",),
    ),
    Mutant(
        name="event-without-listener-dropped",
        harm="An event that no queue is bound for disappears without a trace.",
        file="producer/job_work.py",
        before="        results = await self._keep_unrouted(publisher, prepared.messages, results, timeout)\n",
        after="",
        tests=(
            "tests/integration/test_producer.py::test_an_event_without_a_queue_is_kept_as_unrouted_and_its_job_goes_on",
        ),
    ),
    Mutant(
        name="history-outside-its-transaction",
        harm="The history tells of a firing that was rolled back.",
        file="producer/job_work.py",
        before="await add_entries(connection, told, self.history)",
        after="async with connection._holder._pool.acquire() as other: await add_entries(other, told, self.history)",
        tests=("tests/integration/test_history.py::test_a_firing_that_is_rolled_back_is_not_told",),
    ),
    Mutant(
        name="unconfirmed-copy-counts",
        harm="An event that no queue is bound for is lost, because its copy was not confirmed.",
        file="producer/job_work.py",
        before="                    results[place] = result\n",
        after="                    pass\n",
        tests=(
            "tests/integration/test_producer.py::"
            "test_an_event_that_even_the_unrouted_queue_cannot_take_stays_pending_until_it_can",
        ),
    ),
    Mutant(
        name="key-without-separator",
        harm="Two jobs whose ids and topics run into each other share a key, and one of them is never delivered.",
        file="shared/contract/fields.py",
        before='text = "\\0".join(',
        after='text = "".join(',
        tests=("tests/unit/test_idempotency.py::test_every_part_counts_and_parts_do_not_run_into_each_other",),
    ),
    Mutant(
        name="fold-rings-twice",
        harm="In the night when the clocks go back, a daily job rings twice.",
        file="shared/recurrence/zones.py",
        before="skipped.append((change.at, change.at - length))",
        after="skipped.append((change.at, change.at))",
        tests=("tests/unit/recurrence/test_daylight_saving.py::test_the_occurrences_around_a_change_are",),
    ),
    Mutant(
        name="backoff-without-cap",
        harm="After a long outage a service stays away for hours although the store is back.",
        file="shared/runtime/backoff.py",
        before="pause = min(self.cap, self.first * 2.0 ** min(self.failures, 30))",
        after="pause = self.first * 2.0 ** min(self.failures, 30)",
        tests=("tests/unit/test_backoff.py::test_pauses_double_up_to_the_cap",),
    ),
    Mutant(
        name="replicas-in-step",
        harm="All replicas come back at the same moments, and knock the store over again.",
        file="shared/runtime/backoff.py",
        before="return pause * random.uniform(0.5, 1.0)",
        after="return pause",
        tests=("tests/unit/test_backoff.py::test_two_replicas_do_not_retry_in_step",),
    ),
    Mutant(
        name="unsent-message-leaves-the-queue",
        harm="An unrouted event that still no queue is bound for is lost when it is sent again.",
        file="shared/kept/queue.py",
        before="await self.drop([one for one, result in zip(chosen, results, strict=True) "
        "if result is PublishResult.CONFIRMED])",
        after="await self.drop(chosen)",
        tests=("tests/cli/test_commands.py::test_unrouted_events_are_listed_sent_again_and_none_is_lost",),
    ),
    Mutant(
        name="past-request-is-late",
        harm="One request for a moment years ago makes the installation look years late.",
        file="shared/reading/overview.py",
        before="greatest(at - greatest(due_at, asked_at), interval '0')",
        after="greatest(at - due_at, interval '0')",
        tests=(
            "tests/integration/test_reading_overview.py::test_lateness_is_that_of_the_newest_rings_and_never_negative",
        ),
    ),
    Mutant(
        name="loop-ends-unnoticed",
        harm="A service whose loop ended by mistake goes on without doing its work, and looks well.",
        file="shared/runtime/loops.py",
        before='    if not stop.requested:\n        raise EndedByItself(f"{name} ended',
        after='    if stop.failure is not None:\n        raise EndedByItself(f"{name} ended',
        tests=("tests/unit/test_lifecycle.py::test_a_loop_that_returns_before_the_stop_is_a_failure",),
    ),
)

MUTANTS = (*_CONSUMER, *DELAYED, *_PRODUCER, *_DELIVERY, *_SHARED)
