"""The console's metrics. Their labels come from closed lists: never a user, an id or a path."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from shared.contract.messages import Outcome

PAGES = (
    "now", "schedules", "schedule", "bulk", "new", "deliveries", "delivery", "delayed", "parked", "unrouted", "history",
    "log-in", "api", "other",
)  # fmt: skip
LOG_INS = ("accepted", "wrong", "limited")


class Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        seconds = Histogram(
            "console_page_seconds",
            "From a request to the page",
            ["page"],
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )
        self._seconds = {page: seconds.labels(page) for page in PAGES}
        self.errors = Counter("console_errors", "Pages that could not be made", registry=registry)
        commands = Counter("console_commands", "Commands sent, by the outcome of their replies", ["outcome"],
                           registry=registry)  # fmt: skip
        self._commands = {outcome: commands.labels(outcome) for outcome in (*Outcome, "unanswered")}
        log_ins = Counter("console_log_ins", "Passwords tried, by result", ["result"], registry=registry)
        self.log_ins = {result: log_ins.labels(result) for result in LOG_INS}
        self.refused_forms = Counter(
            "console_forms_refused", "Forms without a valid token, or of another site", registry=registry
        )
        self.streams = Gauge("console_streams", "Pages that are kept live now", registry=registry)

    def seconds(self, page: str) -> Histogram:
        return self._seconds.get(page, self._seconds["other"])

    def command(self, outcome: str) -> Counter:
        return self._commands.get(outcome, self._commands["unanswered"])
