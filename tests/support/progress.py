"""A pytest plugin: what a long run is doing, how long it usually takes, and what it did not test.

`tests/usual_seconds.json` has how long each slow test took when a run was last recorded (`--record-usual`, on a quiet
machine). Slow tests begin first, so that no worker is left with a long one at the end.
"""

import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

USUAL = Path(__file__).parents[1] / "usual_seconds.json"
# Tests that take less are not worth a line in the file; all of them together count as `quick` seconds for each.
SLOW_SECONDS = 0.5
# Seconds between two progress lines: in a log, and on a terminal, where each takes the place of the one before.
IN_A_LOG, ON_A_TERMINAL = 20.0, 0.5
LINE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Usual:
    """How long tests take on a quiet machine, by their ids, and how long a whole run takes."""

    slow: dict[str, float]
    quick: float = 0.0
    run: float = 0.0

    @classmethod
    def load(cls) -> "Usual":
        return cls(**json.loads(USUAL.read_text())) if USUAL.exists() else cls({})

    def of(self, test: str) -> float:
        return self.slow.get(test, self.quick)


def name_of(nodeid: str) -> str:
    """A test's id without the group that pytest-xdist puts behind it."""
    name, _, group = nodeid.rpartition("@")
    return nodeid if not name or "]" in group else name


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


@dataclass(slots=True)
class Progress:
    """Counts what the workers report, and writes a line now and then."""

    reporter: pytest.TerminalReporter
    usual: Usual
    began: float = field(default_factory=time.monotonic)
    tests: int = 0
    done: int = 0
    running: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    not_tested: Counter[str] = field(default_factory=Counter)
    _last_line_at: float = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._begin(len(ids))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._begin(len(session.items))

    def _begin(self, tests: int) -> None:
        if self.tests:
            return
        self.tests, self.began = tests, time.monotonic()
        usually = (
            f"; all of them took {clock(self.usual.run)} min when that was last recorded" if self.usual.run else ""
        )
        self.reporter.write_line(f"{tests} tests{usually}")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running[name_of(nodeid)] = time.monotonic()
        self._tell()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.running.pop(name_of(nodeid), None)
        self.done += 1
        self._tell()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = name_of(report.nodeid)
        self.seconds[test] = self.seconds.get(test, 0.0) + report.duration
        if report.skipped and isinstance(report.longrepr, tuple):
            self.not_tested[report.longrepr[2].removeprefix("Skipped: ")] += 1
        if report.failed:
            self.reporter.write_line(f"FAILED {test} ({report.when})", red=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No dots: the progress line and a line for each failure take their place."""
        if report.failed:
            return ("failed" if report.when == "call" else "error"), "", ""
        if report.skipped and not hasattr(report, "wasxfail"):
            return "skipped", "", ""
        return ("passed", "", "") if report.passed and report.when == "call" else None

    def _tell(self) -> None:
        on_a_terminal = self.reporter.isatty
        if time.monotonic() - self._last_line_at < (ON_A_TERMINAL if on_a_terminal else IN_A_LOG):
            return
        self._last_line_at = time.monotonic()
        line = self._line()
        if on_a_terminal:
            self.reporter.rewrite(line[:LINE_WIDTH], erase=True)
        elif self.done:
            self.reporter.write_line(line)

    def _line(self) -> str:
        now = time.monotonic()
        line = f"{clock(now - self.began)}  {self.done} of {self.tests}"
        slow = [(self.usual.of(test), test, now - since) for test, since in self.running.items()]
        if slow and (longest := max(slow))[0] >= SLOW_SECONDS:
            usually, test, so_far = longest
            line += f", {test.rpartition('::')[2]} ({so_far:.0f} s so far, usually {usually:.0f})"
        return line

    def pytest_terminal_summary(self) -> None:
        if self.not_tested:
            self.reporter.section("not tested")
            for reason, tests in sorted(self.not_tested.items()):
                self.reporter.write_line(f"{tests} test{'s' * (tests > 1)}: {reason}")

    def record(self) -> None:
        slow = {test: round(took, 1) for test, took in sorted(self.seconds.items()) if took >= SLOW_SECONDS}
        quick = [took for took in self.seconds.values() if took < SLOW_SECONDS]
        run = round(time.monotonic() - self.began)
        content = {"run": run, "quick": round(sum(quick) / max(1, len(quick)), 3), "slow": slow}
        USUAL.write_text(json.dumps(content, indent=1) + "\n")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if session.config.getoption("record_usual") and exitstatus == pytest.ExitCode.OK:
            self.record()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-usual", action="store_true", help="write how long each test took to usual_seconds.json")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in an order that depends on the seed")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(config, "workerinput")
    if isinstance(reporter, pytest.TerminalReporter) and not is_worker and config.get_verbosity() == 0:
        config.pluginmanager.register(Progress(reporter, Usual.load()), "duebell-progress")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The slowest group first; a test without a group is one by itself. Every worker must find the same order."""
    usual, seed = Usual.load(), config.getoption("shuffle")
    if seed is not None:
        return _shuffle(items, seed)
    groups: dict[str, float] = {}
    for item in items:
        group = _group(item)
        groups[group] = groups.get(group, 0.0) + usual.of(name_of(item.nodeid))
    return items.sort(key=lambda item: -groups[_group(item)])


def _shuffle(items: list[pytest.Item], seed: int) -> None:
    """Shuffle the tests. Those marked `in_order` stay together, and in their order."""
    together: dict[str, list[pytest.Item]] = {}
    for item in items:
        in_order = item.get_closest_marker("in_order")
        together.setdefault(str(item.path) if in_order else item.nodeid, []).append(item)
    units = list(together.values())
    random.Random(seed).shuffle(units)
    items[:] = [item for unit in units for item in unit]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test of a group that is not kept on one worker: each worker would start the servers of the group."""
    in_groups = item.config.getoption("loadgroup", default=False)  # set by pytest-xdist, on its workers
    if in_groups and item.get_closest_marker("xdist_group") and name_of(item.nodeid) == item.nodeid:
        pytest.fail(
            f"pytest {pytest.__version__} and the pytest-xdist beside it spread a group of tests over all workers. "
            "Run `make setup`: it installs the versions of requirements-dev.lock.",
            pytrace=False,
        )


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark and mark.args else item.nodeid
