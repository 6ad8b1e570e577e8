"""`make screenshots`: the pictures of docs/console.md, each page light and dark, wide and as on a phone, from sample
jobs on a stack of its own. `--whole DIRECTORY` writes whole pages there instead, to look at.
"""

import argparse
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page

from tests.console.browsers import open_page, running_browser
from tests.console.running_console import OPERATOR, RunningConsole, running_console
from tests.support.stores import make_template_now, running_stores, store_directory

PICTURES = Path(__file__).parents[1] / "docs" / "assets" / "console"
GAP = "&kind=cron&cron=30+2+*+*+*&timezone=Europe/Berlin&start_at=2027-03-26T00:00"
SCREENSHOTS = {
    "now": "/?ahead=day",
    "schedules": "/schedules",
    "schedule": "/schedule?id=report-weekly-revenue",
    "why": "/schedule?id=newsletter-november",
    "new": "/new?id=standup-data&topic=team.standup" + GAP,
    "deliveries": "/deliveries",
    "delivery": "/delivery?id=1",
    "delayed": "/delayed",
    "parked": "/parked",
    "unrouted": "/unrouted",
    "history": "/history",
    "log-in": "/log-in",
}
WIDTHS = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
SCHEMES = ("light", "dark")
QUALITY = 72

# An hour of occurrences, as late as they usually are, for the chart.
PAST_HOUR = """
insert into history (job_id, at, what, sequence, due_at, life, revision)
select 'meter-' || n % 40, due_at + (0.004 + 0.012 * random() ^ 4) * interval '1 second', 'fired', n, due_at, 1, 1
  from generate_series(1, 3000) as n,
       lateral (select now() - n * interval '1.2 seconds' as due_at) as moment
"""

EXCHANGES = "insert into delay_exchanges (exchange) values ('shop.orders'), ('shop.mail')"
# Nothing of it is due while the pictures are made.
DELAYED = """
insert into delayed_messages (exchange, routing_key, header, body, due_at, message_id, name, refusals, retry_at,
                              refused_because)
select case when n % 3 = 0 then 'shop.mail' else 'shop.orders' end, convert_to('order.unpaid', 'UTF8'), '\\x0000',
       convert_to(repeat('x', 40 + 17 * n), 'UTF8'), now() + n * interval '17 minutes', 'order-' || 7300 + n,
       case when n % 4 = 0 then 'cart-' || n end, case when n = 3 then 2 else 0 end,
       case when n = 3 then now() + interval '1 hour' end, case when n = 3 then 'no queue is bound' end
  from generate_series(1, 14) as n
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.screenshots", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PAGE", help=f"some of {', '.join(SCREENSHOTS)}")
    parser.add_argument("--whole", type=Path, metavar="DIRECTORY", help="whole pages, as PNG, into this directory")
    given = parser.parse_args(arguments)
    names = given.names or list(SCREENSHOTS)
    if unknown := set(names) - SCREENSHOTS.keys():
        parser.error(f"there is no page {', '.join(sorted(unknown))}")
    directory = given.whole or PICTURES
    directory.mkdir(parents=True, exist_ok=True)
    with console_with_samples() as console, running_browser() as browser:
        for name in names:
            for scheme in SCHEMES:
                for width, viewport in WIDTHS.items():
                    page = _open(browser, console, name, scheme, viewport)
                    picture = page.screenshot(full_page=given.whole is not None)
                    page.context.close()
                    _write(picture, directory / f"{name}-{scheme}-{width}", whole=given.whole is not None)
    return 0


@contextmanager
def console_with_samples() -> Iterator[RunningConsole]:
    with (
        store_directory("screenshots") as directory,
        running_stores(directory) as stores,
        TemporaryDirectory() as logs,
    ):
        make_template_now(stores)
        with running_console(stores, Path(logs)) as console:
            for statement in (PAST_HOUR, EXCHANGES, DELAYED):
                console.fetch(statement)
            yield console


def _open(browser: Browser, console: RunningConsole, name: str, scheme: str, viewport: dict[str, int]) -> Page:
    page, _ = open_page(browser, console, OPERATOR, color_scheme=scheme, viewport=viewport)
    if name == "log-in":
        page.context.clear_cookies()
    page.goto(SCREENSHOTS[name])
    page.evaluate("document.fonts.ready")
    if name == "new":
        page.locator("#preview .occurrences").wait_for()
    return page


def _write(picture: bytes, path: Path, *, whole: bool) -> None:
    if whole:
        path.with_suffix(".png").write_bytes(picture)
        return
    with Image.open(io.BytesIO(picture)) as opened:
        opened.save(path.with_suffix(".webp"), quality=QUALITY, method=6)
    sys.stdout.write(f"{path.stem}: {path.with_suffix('.webp').stat().st_size // 1024} kB\n")


if __name__ == "__main__":
    sys.exit(main())
