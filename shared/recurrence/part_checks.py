"""Checks the parts of an RRULE together: combinations that RFC 5545 forbids, and those that no calendar ever meets."""

from shared.errors import BadRule
from shared.recurrence.parts import WEEKDAYS, RuleParts

MAX_DAYS_OF_MONTH = dict.fromkeys((1, 3, 5, 7, 8, 10, 12), 31) | dict.fromkeys((4, 6, 9, 11), 30) | {2: 29}
# Times of day of a rule of a day or longer. BYHOUR, BYMINUTE and BYSECOND multiply, and the rule keeps the list.
MAX_TIMES_OF_DAY = 1_440


def check_parts(parts: RuleParts) -> None:
    check_frequency(parts)
    check_ordinals(parts)
    check_end(parts)
    check_month_days(parts)
    check_positions(parts)


def check_frequency(parts: RuleParts) -> None:
    days, freq = parts.days, parts.freq
    if days.week_number and freq != "YEARLY":
        raise BadRule("rrule", f"BYWEEKNO: only with FREQ=YEARLY, not {freq}")
    if days.year_day and freq in {"DAILY", "WEEKLY", "MONTHLY"}:
        raise BadRule("rrule", f"BYYEARDAY: not with FREQ={freq}")
    if days.month_day and freq == "WEEKLY":
        raise BadRule("rrule", "BYMONTHDAY: not with FREQ=WEEKLY")
    times = max(1, len(parts.hour)) * max(1, len(parts.minute)) * max(1, len(parts.second))
    if freq in {"YEARLY", "MONTHLY", "WEEKLY", "DAILY"} and times > MAX_TIMES_OF_DAY:
        raise BadRule("rrule", f"BYHOUR, BYMINUTE, BYSECOND: {times} times a day, more than {MAX_TIMES_OF_DAY}")


def check_ordinals(parts: RuleParts) -> None:
    days = parts.days
    ordinals = [(weekday, nth) for weekday, nth in days.weekday if nth]
    if not ordinals:
        return
    weekday, nth = max(ordinals, key=lambda pair: abs(pair[1]))
    first = f"{nth}{WEEKDAYS[weekday]}"
    if parts.freq not in {"YEARLY", "MONTHLY"}:
        raise BadRule("rrule", f"BYDAY: {first} counts weekdays, only with FREQ=MONTHLY or YEARLY")
    if days.week_number:
        raise BadRule("rrule", f"BYDAY: {first} counts weekdays, not together with BYWEEKNO")
    if abs(nth) > 5 and (parts.freq == "MONTHLY" or days.month):
        raise BadRule("rrule", f"BYDAY: {first}, but a month has at most five of a weekday")
    if days.skip != "OMIT" and (days.month_day or days.year_day):
        raise BadRule("rrule", f"SKIP: not together with BYDAY={first} and days of the month or year")


def check_end(parts: RuleParts) -> None:
    if parts.count is not None and parts.until is not None:
        raise BadRule("rrule", "UNTIL: not together with COUNT")


def check_month_days(parts: RuleParts) -> None:
    days = parts.days
    if not days.month_day or (days.skip != "OMIT" and parts.freq in {"YEARLY", "MONTHLY"}):
        return
    longest = max(MAX_DAYS_OF_MONTH[month] for month in days.month or MAX_DAYS_OF_MONTH)
    nearest = min(abs(day) for day in days.month_day)
    if nearest > longest:
        raise BadRule("rrule", f"BYMONTHDAY: no month of BYMONTH has a day {nearest}")


def check_positions(parts: RuleParts) -> None:
    if not parts.positions:
        return
    days = parts.days
    if not (days.limits() or parts.hour or parts.minute or parts.second):
        raise BadRule("rrule", "BYSETPOS: only together with another BY part")
    most = most_days(parts) * (len(parts.hour) or 1) * (len(parts.minute) or 1) * (len(parts.second) or 1)
    if parts.freq in {"HOURLY", "MINUTELY", "SECONDLY"}:
        most = {
            "HOURLY": (len(parts.minute) or 1) * (len(parts.second) or 1),
            "MINUTELY": len(parts.second) or 1,
            "SECONDLY": 1,
        }[parts.freq]
    nearest = min(abs(position) for position in parts.positions)
    if nearest > most:
        raise BadRule("rrule", f"BYSETPOS: {nearest}, but {parts.freq} has at most {most} to choose from")


def most_days(parts: RuleParts) -> int:
    """Return a limit on the days that the rule names in any one period."""
    days = parts.days
    most = {"YEARLY": 366, "MONTHLY": 31, "WEEKLY": 7}.get(parts.freq, 1)
    if parts.freq == "WEEKLY":
        return len(days.weekday) or 1
    if parts.freq == "MONTHLY":
        most = min(most, len(days.month_day) or 31, sum(1 if nth else 5 for _, nth in days.weekday) or 31)
        return 1 if not days.names_days() else most
    if parts.freq == "YEARLY" and not days.names_days():
        return len(days.month) or 1
    return most
