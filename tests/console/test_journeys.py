"""What people do in the console, in a real browser on real services."""

import html
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.console.browsers import open_page
from tests.console.running_console import OPERATOR, PASSWORD, VIEWER, RunningConsole
from tests.support.npm_project import installed_project
from tests.support.services import ROOT

PAGES = {
    "now": "/",
    "schedules": "/schedules",
    "schedule": "/schedule?id=report-weekly-revenue",
    "new": "/new?id=standup-data&kind=cron&cron=30+2+*+*+*&timezone=Europe/Berlin&topic=team.standup",
    "delayed": "/delayed",
    "deliveries": "/deliveries",
    "delivery": "/delivery?id=1",
    "parked": "/parked",
    "unrouted": "/unrouted",
    "history": "/history",
    "bulks": "/bulk",
    "bulk": "/bulk?id=count-invoices",
}
COUNT_INVOICES = ("schedule.bulk", {"id": "count-invoices", "action": "pause", "selector": {"topic": "billing"},
                                    "dry_run": True})  # fmt: skip


def test_a_newcomer_finds_what_did_not_ring_reads_why_and_mends_it(operator: Page, console: RunningConsole) -> None:
    operator.keyboard.press("/")
    operator.keyboard.type("NEWSLETTER")
    operator.keyboard.press("Enter")
    operator.get_by_role("link", name="newsletter-november").click()
    expect(operator.get_by_label("Why", exact=True)).to_contain_text("due.event.biling.newsletter")

    operator.get_by_role("link", name="Schedule again, changed").click()
    operator.get_by_label("Topic").fill("billing.newsletter")
    soon = datetime.now(UTC) + timedelta(days=2)
    operator.get_by_label("At", exact=True).fill(soon.strftime("%Y-%m-%dT%H:%M"))
    expect(operator.locator("#preview")).to_contain_text("lives again")
    operator.get_by_role("button", name="Schedule", exact=True).click()

    expect(operator.get_by_label("Why", exact=True)).to_contain_text("Not yet")
    [job] = console.fetch("select topic, status, life from jobs where id = 'newsletter-november'")
    assert job == {"topic": "billing.newsletter", "status": "pending", "life": 2}


def test_several_are_paused_and_resumed_and_the_history_names_the_person(
    operator: Page, console: RunningConsole
) -> None:
    operator.goto("/schedules?search=invoice-424")
    operator.get_by_label("Choose all on this page").check()
    number = operator.get_by_label(re.compile("Choose invoice")).count()
    assert number == 10
    expect(operator.locator("#marked")).to_contain_text("10 chosen")
    chosen = operator.locator("#marked")
    chosen.get_by_label("Why, for the history").fill("the customer moves")
    chosen.get_by_role("button", name="Pause", exact=True).click()
    expect(operator.get_by_role("status")).to_contain_text("10 paused")
    paused = "select count(*) from jobs where id like 'invoice-424%' and status = 'paused'"
    assert console.fetch(paused) == [{"count": 10}]

    operator.goto("/schedules?search=invoice-424&state=paused")
    operator.get_by_label("Choose all on this page").check()
    operator.locator("#marked").get_by_role("button", name="Resume", exact=True).click()
    expect(operator.get_by_role("status")).to_contain_text("10 resumed")
    assert console.fetch(paused) == [{"count": 0}]

    operator.goto("/history?search=invoice-4240&by=alice")
    rows = operator.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("the customer moves")
    expect(rows.nth(1)).to_contain_text("alice")


def test_the_form_shows_what_would_come_and_carries_the_payload_to_the_digit(
    operator: Page, console: RunningConsole
) -> None:
    operator.goto("/new")
    operator.get_by_label("Id", exact=True).fill("half-past-two")
    operator.get_by_role("radio", name="Cron").check()
    operator.get_by_role("textbox", name="Cron").fill("30 2 * *")
    expect(operator.locator("#preview")).to_contain_text("It would be rejected")
    operator.get_by_role("textbox", name="Cron").fill("30 2 * * *")
    operator.locator("#new").get_by_label("Time zone").fill("America/New_York")
    operator.get_by_text("More", exact=True).click()
    operator.get_by_label("Rule starts at").fill("2027-03-13T00:00")
    expect(operator.locator("#preview")).to_contain_text("It would be accepted.")
    expect(operator.locator("#preview")).to_contain_text("every day at 02:30 America/New_York")
    expect(operator.locator("#preview")).to_contain_text("moved forward: the clocks skip its time on this day")
    payload = '{"account": 12345678901234567890123, "rate": 0.10}'
    operator.get_by_label("Payload").fill(payload)
    operator.get_by_role("button", name="Schedule", exact=True).click()

    expect(operator.get_by_role("heading", level=1)).to_have_text("half-past-two")
    expect(operator.locator("pre").first).to_have_text(payload)
    assert console.fetch("select payload::text from jobs where id = 'half-past-two'") == [{"payload": payload}]


def test_a_parked_message_is_shown_with_its_reason_and_dropped(operator: Page) -> None:
    operator.goto("/parked?job=cleanup-tmp")
    row = operator.locator("tbody tr")
    expect(row).to_contain_text("cron: minute: '61' is not understood")
    row.get_by_role("checkbox").check()
    operator.on("dialog", lambda dialog: dialog.accept())
    operator.get_by_role("button", name="Drop").click()
    expect(operator.get_by_role("status")).to_contain_text("1 dropped")
    expect(operator.get_by_text("Nothing is parked")).to_be_visible()


def test_failed_deliveries_are_replayed_one_and_all_that_match(operator: Page, console: RunningConsole) -> None:
    operator.on("dialog", lambda dialog: dialog.accept())
    operator.goto("/deliveries?job=ledger-export-1")
    operator.get_by_label("Choose", exact=False).last.check()
    operator.get_by_role("button", name="Replay", exact=True).click()
    expect(operator.get_by_role("status")).to_contain_text("1 replayed")
    operator.goto("/deliveries?topic=billing.ledger")
    operator.get_by_role("button", name="Replay all that match").click()
    expect(operator.get_by_role("status")).to_contain_text("replayed")
    replays = "select count(distinct replay_of) from deliveries where replay_of is not null and job_id ~ 'ledger'"
    [row] = console.fetch(replays)
    assert row["count"] >= 3
    told = console.fetch("select distinct operator, by_user from history where what = 'replayed'")
    assert told == [{"operator": "alice", "by_user": "duebell_console"}]


def test_a_page_stays_up_to_date_without_being_loaded_again_until_it_is_paused(
    operator: Page, console: RunningConsole
) -> None:
    operator.goto("/schedule?id=nightly-backup-check")
    operator.evaluate("window.isTheSamePage = true")
    badge = operator.locator(".page-head .badge")
    note = operator.get_by_label("Why, for the history")
    note.fill("the disk is")
    console.command(("schedule.pause", {"id": "nightly-backup-check"}))
    expect(badge).to_have_text("paused")
    expect(operator.get_by_role("button", name="Resume")).to_be_visible()
    expect(operator.get_by_role("button", name="Pause", exact=True)).to_have_count(0)
    expect(note).to_have_value("the disk is")
    expect(note).to_be_focused()

    operator.get_by_role("button", name="Live").click()
    operator.evaluate(
        """document.addEventListener("htmx:sse:before:message", (event) => {
            document.body.dataset.news = event.detail.message.data;
        })"""
    )
    console.command(("schedule.resume", {"id": "nightly-backup-check"}))
    expect(operator.locator("body")).to_have_attribute("data-news", re.compile(">pending</span>"))
    expect(badge).to_have_text("paused")
    operator.get_by_role("button", name="Paused").click()
    expect(badge).to_have_text("pending")
    assert operator.evaluate("window.isTheSamePage")


def test_a_live_page_that_gets_no_news_says_so_and_stays_as_it_is(browser: Browser, console: RunningConsole) -> None:
    page, _ = open_page(browser, console, OPERATOR)
    state = page.locator("#pause")
    page.route("**/schedules/live*", lambda route: route.fulfill(status=503, body="<p>Too many live pages</p>"))
    page.goto("/schedules")
    expect(state).to_have_text("Not live")
    expect(page.get_by_role("heading", level=2)).to_contain_text("pending schedules")

    answers = iter([{"status": 200, "content_type": "text/event-stream", "body": ": \n\n"}])
    page.route("**/history/live*", lambda route: route.fulfill(**next(answers, {"status": 500})))
    page.goto("/history")
    expect(state).to_have_text("Reconnecting")
    page.route("**/history/live*", lambda route: route.continue_())
    expect(state).to_have_text("Live")
    page.context.close()


def test_a_live_page_leads_to_the_log_in_when_the_session_has_ended(browser: Browser, console: RunningConsole) -> None:
    page, _ = open_page(browser, console, OPERATOR)
    streams = []

    def answer(route: Route) -> None:
        streams.append(route.request.url)
        if len(streams) == 1:
            page.context.clear_cookies()  # before the stream ends: the next one is asked for without the session
            route.fulfill(status=200, content_type="text/event-stream", body=": \n\n")
        else:
            route.continue_()

    page.route("**/history/live*", answer)
    page.goto("/history?by=alice")
    page.wait_for_url("**/log-in?to=%2Fhistory%3Fby%3Dalice")
    page.context.close()


def test_rows_stay_where_they_are_while_some_are_chosen(operator: Page) -> None:
    operator.goto("/schedules")
    state = operator.locator("#pause")
    expect(state).to_have_text("Live")
    box = operator.get_by_role("checkbox", name=re.compile("Choose invoice")).first
    box.check()
    expect(state).to_have_text("Paused while rows are chosen")
    box.uncheck()
    expect(state).to_have_text("Live")


def test_the_key_enter_in_a_note_does_nothing(operator: Page) -> None:
    for path in ("/schedule?id=nightly-backup-check", "/schedules?search=invoice"):
        operator.goto(path)
        operator.evaluate(
            "document.addEventListener('submit', (event) => { event.preventDefault(); document.title = 'sent'; })"
        )
        notes = operator.get_by_label("Why, for the history").all()
        assert notes
        for note in notes:
            note.press("Enter")
        assert "sent" not in operator.title()


def test_each_schedule_has_its_page(console: RunningConsole) -> None:
    """Among them: with a webhook and without, with a signing secret and without, of each state."""
    cookie = {"Cookie": console.session_of(OPERATOR)}
    for job in console.fetch("select distinct on (topic, status) id from jobs"):
        for path in ("/schedule?id=", "/new?again="):
            answer = console.ask(path + quote(job["id"]), headers=cookie)
            assert answer.status == 200, (path, job)


def test_every_number_of_the_first_page_leads_to_its_list(console: RunningConsole) -> None:
    cookie = {"Cookie": console.session_of(VIEWER)}
    page = console.ask("/?ahead=week", headers=cookie).text
    main = page[page.index("<main") : page.index("</main>")]
    links = {html.unescape(link) for link in re.findall(r'href="([^"]+)"', main)}
    assert len(re.findall(r'<a class="figure', main)) == len(re.findall(r'class="figure[ "]', main)) == 12
    for link in links:
        answer = console.ask(link, headers=cookie)
        assert (answer.status, "Some filters were left out" in answer.text) == (200, False), link
    for name, state in (("Failed webhooks", "failed"), ("Pending", "pending"), ("Unrouted", "")):
        [link] = re.findall(rf'<a class="figure[^"]*" href="([^"]+)"><span class="name">{name}', main)
        assert state in link


def test_times_are_told_in_the_zone_of_the_reader(operator: Page) -> None:
    operator.goto("/schedule?id=licence-renewal-acme")
    when = operator.get_by_role("table").locator("time").first
    expect(when).to_have_attribute("title", "Wed 2027-03-31 09:00:00 CEST")
    operator.get_by_text("alice", exact=True).click()
    operator.get_by_label("Time zone").fill("Asia/Tokyo")
    expect(operator.locator("#zones option[value='Asia/Tokyo'], #zones option:text-is('Asia/Tokyo')")).to_have_count(1)
    operator.keyboard.press("Escape")
    expect(operator.get_by_label("Time zone")).to_be_hidden()
    operator.get_by_text("alice", exact=True).click()
    operator.get_by_role("button", name="Save").click()
    expect(when).to_have_attribute("title", "Wed 2027-03-31 16:00:00 JST")
    operator.goto("/schedule?id=report-weekly-revenue")  # its rule is in Europe/Berlin
    expect(operator.get_by_label("Why", exact=True)).to_contain_text(re.compile(r" 1[45]:00:00 JST"))
    expect(operator.locator("footer")).to_contain_text("Asia/Tokyo")


def test_a_viewer_sees_no_payload_and_nothing_to_act_with(browser: Browser, console: RunningConsole) -> None:
    page, complaints = open_page(browser, console, VIEWER)
    page.goto("/schedule?id=report-weekly-revenue")
    expect(page.get_by_text("Hidden: your user has no right to see payloads.")).to_be_visible()
    assert "12345678901234567890123" not in page.content()
    assert page.get_by_role("button", name=re.compile("Pause$|Cancel|Trigger")).count() == 0
    page.goto("/schedules")
    assert page.get_by_role("checkbox").count() == 0
    assert complaints == []
    page.goto("/new")
    expect(page.get_by_text("Your role is viewer")).to_be_visible()
    page.context.close()


def test_reading_works_without_javascript(browser: Browser, console: RunningConsole) -> None:
    page, _ = open_page(browser, console, VIEWER, java_script_enabled=False)
    page.context.clear_cookies()
    page.goto("/schedules")
    page.get_by_label("Name").fill(VIEWER)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Schedules")
    page.get_by_role("link", name="Now").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Now")
    page.get_by_label("Find a schedule").fill("weekly")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="report-weekly-revenue").click()
    expect(page.get_by_label("Why", exact=True)).to_contain_text(" 07:00:00 CE")
    expect(page.get_by_text("every Monday at 07:00 Europe/Berlin").first).to_be_visible()
    page.goto("/schedules?topic=billing")
    first = page.locator("td.id").first.text_content()
    page.get_by_role("link", name="Next page").click()
    assert page.locator("td.id").first.text_content() != first
    page.get_by_role("link", name="To the start").click()
    assert page.locator("td.id").first.text_content() == first
    console.command(COUNT_INVOICES)
    for name in PAGES.keys() - {"new"}:
        answer = page.goto(PAGES[name])
        assert answer is not None
        assert answer.status == 200, name
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_barrier(browser: Browser, console: RunningConsole, scheme: str) -> None:
    axe = installed_project(ROOT / "tests" / "console" / "axe") / "node_modules" / "axe-core" / "axe.min.js"
    # A dark page differs from the light one in its colours alone.
    options = {"resultTypes": ["violations"], **({"runOnly": ["color-contrast"]} if scheme == "dark" else {})}
    page, _ = open_page(browser, console, OPERATOR, color_scheme=scheme, bypass_csp=True)
    barriers = {}
    console.command(COUNT_INVOICES)
    for name, path in {**PAGES, "not found": "/schedule?id=no-such-job", "log-in": None}.items():
        if path is None:
            page.context.clear_cookies()
        page.goto(path or "/log-in")
        page.add_script_tag(path=axe)
        found = page.evaluate("options => axe.run(options)", options)["violations"]
        serious = [one for one in found if one["impact"] in {"serious", "critical"}]
        barriers[name] = [(one["id"], [node["target"] for node in one["nodes"][:3]]) for one in serious]
    page.context.close()
    assert {name: one for name, one in barriers.items() if one} == {}


def test_on_a_phone_no_page_is_wider_than_the_screen(browser: Browser, console: RunningConsole) -> None:
    page, complaints = open_page(browser, console, OPERATOR, viewport={"width": 390, "height": 844})
    widths = {}
    console.command(COUNT_INVOICES)
    for name, path in PAGES.items():
        page.goto(path)
        widths[name] = page.evaluate("document.documentElement.scrollWidth")
    page.context.close()
    assert widths == dict.fromkeys(PAGES, 390)
    assert complaints == []  # such as of the content security policy


TEN_THOUSAND = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at, labels)
select 'shift-' || n, 'pending', 1, 'team.shift', '1', 'all', 60, now() + interval '1 year', '{"ward": "east"}'
  from generate_series(1, 10000) as n
"""


def test_all_of_a_label_are_paused_and_that_is_undone(operator: Page, console: RunningConsole) -> None:
    console.fetch(TEN_THOUSAND)
    for action, before, after in (("Pause", "pending", "paused"), ("Resume", "paused", "pending")):
        operator.goto(f"/schedules?state={before}")
        operator.get_by_label("Labels").fill("ward=east")
        operator.get_by_role("button", name="Filter").click()
        expect(operator.get_by_role("heading", name=f"10,000 {before} schedules")).to_be_visible()
        everything = operator.get_by_role("form", name="All that match")
        everything.get_by_label("Why, for the history").fill("the ward is painted")
        everything.get_by_role("button", name=f"{action} all").click()
        operator.get_by_role("button", name=f"{action} 10,000 schedules").click()
        expect(operator.get_by_role("status")).to_contain_text("10,000 changed, of 10,000")
        assert console.fetch("select distinct status from jobs where id like 'shift-%'") == [{"status": after}]
