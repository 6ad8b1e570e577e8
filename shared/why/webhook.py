"""What became of the webhook of an occurrence that was published. Pure."""

from shared.contract.history import What
from shared.reading.times import describe_duration
from shared.why.explanation import Cause, Explanation
from shared.why.facts import Delivery, Entry, Facts
from shared.why.sentences import Times, command, counted, shortened
from shared.why.timeline import describe_entry

_WORDS = {
    "timeout": "did not answer in time",
    "connect": "takes no connection",
    "dns": "has no address: its name cannot be looked up",
    "tls": "has no TLS certificate that can be trusted, or speaks no TLS",
    "connection_lost": "closed the connection without an answer",
    "protocol": "answered something that is not HTTP",
    "unexpected": "could not be called, for a reason that the log of the delivery service tells",
    "too_many_lookups": "waits: too many lookups of other names hang",
}


def explain_webhook(facts: Facts, fired: str, entry: Entry, times: Times) -> Explanation:
    """Say how the call stands that follows the event. `fired` tells of the event."""
    delivery = delivery_of(facts, entry)
    if delivery is None:
        return _not_stored(facts, fired, entry, times)
    match delivery.status:
        case "COMPLETED":
            tries = f" at attempt {delivery.attempts}" if delivery.attempts > 1 else ""
            answer = f"{delivery.host} answered {delivery.last_status_code or '2xx'}{tries}"
            return Explanation(
                Cause.WEBHOOK_ANSWERED, f"{fired}. Its webhook {answer}, {times.at(delivery.finished_at)}."
            )
        case "FAILED":
            return _failed(delivery, fired)
        case _:
            return _open(facts, delivery, fired, times)


def delivery_of(facts: Facts, entry: Entry) -> Delivery | None:
    """Return the newest call of the occurrence. Its moment tells it from that of an earlier life of the id."""
    occurrence = (entry.sequence, entry.due_at, entry.details.get("trigger_id"))
    return next((one for one in facts.deliveries if (one.sequence, one.due_at, one.trigger_id) == occurrence), None)


def _not_stored(facts: Facts, fired: str, entry: Entry, times: Times) -> Explanation:
    ended = facts.newest(What.DELIVERED, What.DELIVERY_FAILED)
    if ended is not None and (ended.sequence, ended.due_at) == (entry.sequence, entry.due_at):
        cause = Cause.WEBHOOK_ANSWERED if ended.what == What.DELIVERED else Cause.WEBHOOK_FAILED
        return Explanation(cause, f"{fired}. Its webhook: {describe_entry(ended)}, {times.at(ended.at)}.")
    if facts.runs("delivery"):
        says = f"{fired}. The delivery service runs but has not stored its event yet."
        return Explanation(Cause.NO_DELIVERY, says, f"See whether its queue is long: {command('status')}.")
    return _no_service(facts, fired, times)


def _no_service(facts: Facts, fired: str, times: Times) -> Explanation:
    seen = facts.last_seen("delivery")
    since = f": the last one was seen {times.at(seen)}" if seen else ""
    says = f"{fired}. No delivery service runs that could call its webhook{since}."
    return Explanation(Cause.NO_DELIVERY, says, "Start the delivery service.")


def _failed(delivery: Delivery, fired: str) -> Explanation:
    replay = f"then {command('deliveries', 'replay', str(delivery.id))}"
    if delivery.reason in {"forbidden_address", "forbidden_port"}:
        return _forbidden(delivery, fired, replay)
    if delivery.reason == "secret_missing":
        return Explanation(
            Cause.SECRET_MISSING,
            f"{fired}. Its webhook was given up: the delivery service knows no secret named {delivery.secret}.",
            f"Add it to WEBHOOK_SECRETS_FILE, {replay}.",
        )
    return Explanation(
        Cause.WEBHOOK_FAILED,
        f"{fired}. Its webhook failed after {counted(delivery.attempts, 'attempt')}: {_last_answer(delivery)}.",
        f"Mend the receiver, {replay}.",
    )


def _forbidden(delivery: Delivery, fired: str, replay: str) -> Explanation:
    if delivery.reason == "forbidden_port":
        rule, setting = "the port is not allowed", "WEBHOOK_ALLOW_PORTS"
    else:
        rule, setting = "the address is not a public one", "WEBHOOK_ALLOW_NETWORKS"
    detail = f"{rule} ({shortened(delivery.last_answer)})" if delivery.last_answer else rule
    return Explanation(
        Cause.FORBIDDEN_ADDRESS,
        f"{fired}. Its webhook {delivery.host} was not called: {detail}.",
        f"If it may be called, allow it with {setting} of the delivery service, {replay}.",
    )


def _open(facts: Facts, delivery: Delivery, fired: str, times: Times) -> Explanation:
    if not facts.runs("delivery"):
        return _no_service(facts, fired, times)
    host = delivery.host
    again = f"the next attempt is {times.at(delivery.next_attempt_at)}"
    if delivery.reason == "secret_missing":
        says = f"{fired}. Its webhook waits: the delivery service knows no secret named {delivery.secret}."
        return Explanation(Cause.SECRET_MISSING, says, f"Add it to WEBHOOK_SECRETS_FILE; {again}.")
    if (pause := facts.pause_of(host)) is not None:
        left = describe_duration(pause)
        says = f"{fired}. Its webhook waits: calls to {host} failed, so it is left alone for {left} more."
        return Explanation(Cause.BREAKER_OPEN, says, "Mend the receiver: it is called again by itself.")
    if not delivery.attempts:
        return Explanation(Cause.WEBHOOK_WAITS, f"{fired}. Its webhook {host} is called for the first time now.")
    left = counted(delivery.attempts_allowed - delivery.attempts, "attempt")
    says = f"{fired}. Its webhook is retried: {_last_answer(delivery)}; {again}, {left} left."
    return Explanation(Cause.WEBHOOK_RETRIES, says, "Mend the receiver: it is called again by itself.")


def _last_answer(delivery: Delivery) -> str:
    if delivery.last_status_code is not None:
        said = f": {shortened(delivery.last_answer)}" if delivery.last_answer else ""
        return f"{delivery.host} answered {delivery.last_status_code}{said}"
    if delivery.last_error is None:
        return f"{delivery.host}: {delivery.reason}"
    words = _WORDS.get(delivery.last_error, f"could not be called ({delivery.last_error})")
    return f"{delivery.host} {words}"
