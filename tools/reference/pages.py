"""Which page of docs/reference has which text."""

from collections.abc import Callable
from pathlib import Path

from tools.reference.command_line import command_line_page
from tools.reference.log_events import log_events_page
from tools.reference.messages import messages_page
from tools.reference.metrics import metrics_page
from tools.reference.settings import settings_page

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
REFERENCE_PAGES: dict[Path, Callable[[], str]] = {
    REFERENCE / "command-line.md": command_line_page,
    REFERENCE / "log-events.md": log_events_page,
    REFERENCE / "messages.md": messages_page,
    REFERENCE / "metrics.md": metrics_page,
    REFERENCE / "settings.md": settings_page,
}
