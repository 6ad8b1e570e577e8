"""The mutants of delayed messages: see tests.mutants.list."""

from tests.mutants.mutant import Mutant

DELAYED = (
    Mutant(
        name="delayed-at-once",
        harm="Every delayed message is published when it comes.",
        file="consumer/store/delayed.py",
        before="greatest(now(), coalesce(due_at, now() + delay))",
        after="greatest(now(), coalesce(due_at, now()))",
        tests=(
            "tests/integration/delayed/test_cancelling.py"
            "::test_a_cancel_ends_all_that_wait_under_its_id_and_leaves_no_job",
        ),
    ),
    Mutant(
        name="delay-rounded-down",
        harm="A message is published before its moment.",
        file="consumer/commands/delayed.py",
        before="to_integral_value(ROUND_CEILING)",
        after='to_integral_value("ROUND_FLOOR")',
        tests=("tests/unit/test_content_header.py::test_a_delay_is_read_in_every_type_and_never_rounded_down",),
    ),
    Mutant(
        name="delayed-dropped-unrouted",
        harm="A message that no queue is bound for when it is due is lost.",
        file="producer/delayed_work.py",
        before="if result is PublishResult.CONFIRMED]",
        after='if str(result) in {"confirmed", "returned", "unrouted"}]',
        tests=(
            "tests/integration/delayed/test_refusals.py"
            "::test_one_message_without_a_queue_is_told_from_a_hundred_with_the_same_properties",
        ),
    ),
    Mutant(
        name="delayed-stalled",
        harm="One message over which the broker closes the connection holds up all others that are due.",
        file="shared/amqp/publisher.py",
        before="            return not self._owns_exchanges\n",
        after="            return False\n",
        tests=(
            "tests/integration/delayed/test_refusals.py"
            "::test_a_message_over_which_the_broker_closes_the_connection_waits_and_holds_up_no_other",
        ),
    ),
    Mutant(
        name="delayed-twice",
        harm="What passes two delay exchanges, or comes back to one, is delayed again and again.",
        file="consumer/commands/delayed.py",
        before="header.replace(each, *negate(each))",
        after="pass",
        tests=("tests/unit/test_content_header.py::test_a_delay_arrives_as_its_negative_among_the_other_headers",),
    ),
    Mutant(
        name="header-lost",
        harm="A receiver misses a header that the sender has set.",
        file="shared/amqp/content_header.py",
        before='self._added += bytes((len(name),)) + name + b"S" + _length.pack(len(text)) + text',
        after='self._added = bytes((len(name),)) + name + b"S" + _length.pack(len(text))',
        tests=("tests/unit/test_content_header.py::test_a_user_without_headers_gets_a_table",),
    ),
    Mutant(
        name="user-lost",
        harm="A receiver does not learn who has sent a delayed message.",
        file="consumer/commands/delayed.py",
        before="header.add_text(USER_HEADER, user)",
        after="header.flags |= 0",
        tests=("tests/unit/test_content_header.py::test_a_user_without_headers_gets_a_table",),
    ),
    Mutant(
        name="stranger-cancels-message",
        harm="Every user of the broker can cancel the delayed messages of all others.",
        file="consumer/commands/to_messages.py",
        before="allowed = [message for message in found if may_command(command.user, message.owner, operators)]",
        after="allowed = list(found)",
        tests=("tests/unit/test_commands_to_messages.py::test_a_message_obeys_its_owner_and_operators_alone",),
    ),
)
