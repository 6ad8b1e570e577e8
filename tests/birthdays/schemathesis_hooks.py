"""What the OpenAPI document cannot say: dates are not in the future, and time zones are in the IANA database."""

from datetime import date
from zoneinfo import available_timezones

import schemathesis
from hypothesis import strategies as st

schemathesis.openapi.format("date", st.dates(date(1, 1, 1), date(2026, 1, 1)).map(date.isoformat))
schemathesis.openapi.format(
    "iana-timezone", st.sampled_from(sorted(name for name in available_timezones() if not name.startswith("localtime")))
)
