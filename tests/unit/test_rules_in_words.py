"""Rules in words: what people read in lists."""

import pytest

from shared.reading.rules import describe_rule

BERLIN = "Europe/Berlin"
START = "2026-11-19T09:00:00"


@pytest.mark.parametrize(
    ("rrule", "words"),
    [
        ("FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "every day at 09:00 Europe/Berlin"),
        ("RRULE:FREQ=DAILY;INTERVAL=2", "every 2 days at 09:00 Europe/Berlin"),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=30", "every weekday at 09:30 Europe/Berlin"),
        ("FREQ=WEEKLY;BYDAY=SA,SU", "every Saturday and Sunday at 09:00 Europe/Berlin"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "every 2 weeks on Monday at 09:00 Europe/Berlin"),
        ("FREQ=WEEKLY", "every week on Thursday at 09:00 Europe/Berlin"),
        ("FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=2;BYMINUTE=30", "every month on the last day at 02:30 Europe/Berlin"),
        ("FREQ=MONTHLY;BYDAY=2TU,-1FR", "every month on the second Tuesday and the last Friday at 09:00 Europe/Berlin"),
        ("FREQ=MONTHLY", "every month on day 19 at 09:00 Europe/Berlin"),
        ("FREQ=YEARLY", "every year on 19 November at 09:00 Europe/Berlin"),
        ("FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=1", "every year on day 1 in March at 09:00 Europe/Berlin"),
        ("FREQ=HOURLY;INTERVAL=6", "every 6 hours Europe/Berlin"),
        ("FREQ=DAILY;COUNT=3", "every day at 09:00 (3 times) Europe/Berlin"),
        ("FREQ=DAILY;UNTIL=20270131T000000Z", "every day at 09:00 until 2027-01-31 Europe/Berlin"),
        ("FREQ=DAILY;BYHOUR=9,17;BYMINUTE=0", "every day at 09:00 and 17:00 Europe/Berlin"),
    ],
)
def test_an_rrule_is_told_in_words(rrule: str, words: str) -> None:
    assert describe_rule(rrule, None, None, BERLIN, START) == words


@pytest.mark.parametrize(
    "rrule",
    [
        "FREQ=DAILY;BYSETPOS=1;BYHOUR=9,10",
        "FREQ=YEARLY;BYWEEKNO=20",
        "RRULE:FREQ=DAILY\nEXDATE:20270101T000000",
        "FREQ=DAILY;BYHOUR=0,1,2,3,4,5",
        "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        "FREQ=MINUTELY;BYHOUR=9",
        "nonsense",
    ],
)
def test_a_rule_without_short_words_is_told_as_it_was_written(rrule: str) -> None:
    assert describe_rule(rrule, None, None, BERLIN, START) == rrule


def test_an_instant_at_which_a_rule_starts_is_told_in_the_zone_of_the_rule() -> None:
    assert describe_rule("FREQ=DAILY", None, None, BERLIN, "2026-11-19T08:00:00Z") == "every day at 09:00 Europe/Berlin"


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("30 9 * * 1-5", "every weekday at 09:30 UTC"),
        ("0 9 * * *", "every day at 09:00 UTC"),
        ("@daily", "every day at 00:00 UTC"),
        ("*/15 * * * *", "every 15th minute of every hour UTC"),
        ("0 9 * * 1,3", "at 09:00 on Monday and Wednesday UTC"),
    ],
)
def test_a_cron_expression_is_told_in_words(cron: str, words: str) -> None:
    assert describe_rule(None, cron, None, None) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "every second"), (5400, "every 90 minutes"), (86_400, "every day"), (61, "every 61 seconds")],
)
def test_an_interval_is_told_in_its_largest_whole_unit(seconds: int, words: str) -> None:
    assert describe_rule(None, None, seconds, None) == words


def test_a_job_without_a_rule_runs_once() -> None:
    assert describe_rule(None, None, None, None) == "once"
