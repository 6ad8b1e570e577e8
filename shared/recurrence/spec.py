"""RuleSpec: everything a recurring job stores about its rule, as one hashable value that survives JSON unchanged."""

import json
from dataclasses import asdict, dataclass
from typing import Literal

Gap = Literal["shift", "skip"]
Fold = Literal["first", "last", "both"]


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """What a rule is made from, as the request gave it: `compile_rule` checks it, nothing here does.

    `start_at` is an RFC 3339 instant, or a local date-time without offset, then wall time in `timezone`. Exactly one of
    `rrule`, `cron` and `every_seconds` is given. `dst_gap` and `dst_fold` left out take the default of the rule.
    """

    start_at: str
    timezone: str = "UTC"
    rrule: str | None = None
    cron: str | None = None
    every_seconds: int | None = None
    dst_gap: Gap | None = None
    dst_fold: Fold | None = None

    def to_json(self) -> str:
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(given, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "RuleSpec":
        return cls(**json.loads(text))
