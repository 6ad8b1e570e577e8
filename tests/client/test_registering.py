"""A handler, a topic or a queue that could never work is refused when it is registered."""

from pathlib import Path

from tests.support.client_program import Installed

SCRIPT = Path(__file__).parent / "scripts" / "registering.py"


async def test_a_handler_a_topic_and_a_queue_that_cannot_work_are_refused_when_registered(
    python: Path, tmp_path: Path
) -> None:
    handlers, topics, queues = await Installed(python, {}, tmp_path).run(SCRIPT)
    refused = {name: words for name, words in handlers.items() if words != "taken"}
    assert set(refused) == {"plain", "partial of plain"}
    assert refused["plain"].startswith("TypeError: plain is no `async def` function")
    never = {topic: words for topic, words in topics.items() if words != "taken"}
    assert set(never) == {"due.event.mail.#", "due.*.mail.#", "two words", ""}
    assert never["due.event.mail.#"].endswith("'due.event.mail.#' is a routing key, and a topic is needed: 'mail.#'")
    never = {queue: words for queue, words in queues.items() if words != "taken"}
    assert set(never) == {"q" * 249, "", "amq.mails"}
    assert never[""].startswith("ValueError: queue: must be a name of 1 to 248 bytes")
