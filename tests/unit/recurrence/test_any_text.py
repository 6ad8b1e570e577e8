"""Whatever text comes in: it is a rule that answers, or a BadRule, and never anything else."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.recurrence import BadRule, Occurrence, RuleSpec, compile_rule, dtstart_in, occurrences
from tests.unit.recurrence.rules_at_random import CHANGES, repeatable

FREQUENCIES = ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"]
BY_PARTS = ["BYSECOND", "BYMINUTE", "BYHOUR", "BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYMONTH", "BYSETPOS"]
NAMES = st.sampled_from(["FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "SKIP", *BY_PARTS])
VALUES = st.one_of(
    st.integers(-400, 400).map(str),
    st.lists(st.integers(-60, 400), min_size=1, max_size=6).map(lambda values: ",".join(map(str, values))),
    st.sampled_from([*FREQUENCIES, "MO", "TU,SU", "1MO", "-1FR,2TU", "53WE", "BACKWARD", "FORWARD"]),
    st.sampled_from(["20250101", "20301231T235959Z", "20300101T000000", "99991231", "00010101T000000"]),
    st.text(max_size=6),
)
PARTS = st.lists(st.tuples(NAMES, VALUES).map("=".join), max_size=5)
FREQUENCY = st.sampled_from(FREQUENCIES).map("FREQ={}".format)
RRULES = st.tuples(FREQUENCY, PARTS).map(lambda both: ";".join([both[0], *both[1]]))
DATES = st.tuples(
    st.sampled_from(["RDATE", "EXDATE", "DTSTART", "RDATE;VALUE=DATE", "EXDATE;TZID=Asia/Tokyo", "SUMMARY", "EXRULE"]),
    VALUES,
).map(":".join)
TEXTS = st.one_of(
    RRULES, st.lists(st.one_of(RRULES.map("RRULE:{}".format), DATES), max_size=4).map("\n".join), st.text()
)
CRONS = st.one_of(
    st.lists(st.text("0123456789*/-,L#WMONFRISU", min_size=1, max_size=6), min_size=5, max_size=5).map(" ".join),
    st.text(max_size=20),
)
ZONES = st.sampled_from([zone for zone, _ in CHANGES])


def first_of(spec: RuleSpec) -> Occurrence | BadRule | None:
    try:
        return compile_rule(spec).first()
    except BadRule as refused:
        return refused


def answers(spec: RuleSpec) -> None:
    """Asks everything a service asks, and checks what must hold for any rule."""
    first = first_of(spec)
    if isinstance(first, BadRule):
        assert str(first)
        assert first.field in {"rrule", "cron", "start_at", "timezone"}
    if not isinstance(first, Occurrence):
        return
    rule = compile_rule(spec)
    second = rule.next_after(first)
    moment = datetime(2040, 1, 1, tzinfo=UTC)
    assert second is None or second.at > first.at
    latest = rule.latest_before(first, max(moment, first.at + timedelta(seconds=1)))
    assert first.at <= latest.at
    assert all(at > moment for at in occurrences(rule, moment, 3))


@repeatable
@given(TEXTS, ZONES)
def test_any_rrule_text(text: str, zone: str) -> None:
    dtstart_in(text)
    answers(RuleSpec(start_at="2025-03-30T02:30:00", timezone=zone, rrule=text))


@repeatable
@given(CRONS, ZONES)
def test_any_cron_text(text: str, zone: str) -> None:
    answers(RuleSpec(start_at="2025-03-30T02:30:00", timezone=zone, cron=text))
