"""Makes the few kinds of panels that the dashboards have, with one look: a number on top that is green, yellow or red,
a graph with its legend as a table, up or down over time. They are built with Grafana's own SDK, whose types are
Grafana's schema.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as models

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
GREEN, YELLOW, RED = "green", "#EAB839", "red"

# Units as Grafana calls them.
SECONDS, COUNT, PER_SECOND = "s", "short", "ops"


@dataclass(frozen=True, slots=True)
class Query:
    expr: str
    legend: str = "__auto"


@dataclass(frozen=True, slots=True)
class Levels:
    """The value from which on a number is worth a look, and the value from which on it is bad."""

    warn: float
    bad: float

    def steps(self) -> list[models.Threshold]:
        return [models.Threshold(None, GREEN), models.Threshold(self.warn, YELLOW), models.Threshold(self.bad, RED)]


NO_LEVELS = [models.Threshold(None, GREEN)]


def number(  # noqa: PLR0913 - what a reader sees of it
    title: str,
    description: str,
    expr: str,
    unit: str,
    *,
    levels: Levels | None = None,
    link: tuple[str, str] | None = None,
    span: int = 3,
) -> stat.Panel:
    """Show one value now, coloured by its level, over the shape of the last hours."""
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .with_target(_target(Query(expr, title), 0))
        .thresholds(_thresholds(levels.steps() if levels else NO_LEVELS))
        .color_mode(looks.BigValueColorMode.BACKGROUND if levels else looks.BigValueColorMode.VALUE)
        .graph_mode(looks.BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("-")
        .height(4)
        .span(span)
    )
    if link:
        name, uid = link
        panel.links([_link_to(name, uid)])
    return panel


def graph(  # noqa: PLR0913
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    *,
    levels: Levels | None = None,
    span: int = 12,
    stacked: bool = False,
    logarithmic: bool = False,
) -> timeseries.Panel:
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .fill_opacity(30 if stacked else 8)
        .line_width(1.5)
        .show_points(looks.VisibilityMode.NEVER)
        .thresholds(_thresholds(levels.steps() if levels else NO_LEVELS))
        .legend(
            common.VizLegendOptions()
            .display_mode(looks.LegendDisplayMode.TABLE)
            .placement(looks.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull", "max"])
        )
        .tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI).sort(looks.SortOrder.DESCENDING))
        .height(8)
        .span(span)
    )
    if levels:
        panel.thresholds_style(
            common.GraphThresholdsStyleConfig().mode(looks.GraphThresholdsStyleMode.DASHED)  # a line at each level
        )
    if stacked:
        panel.stacking(common.StackingConfig().mode(looks.StackingMode.NORMAL))
    if logarithmic:
        panel.scale_distribution(common.ScaleDistributionConfig().type(looks.ScaleDistribution.LOG).log(10))
    else:
        panel.min(0)
    for place, query in enumerate(queries):
        panel.with_target(_target(query, place))
    return panel


def up_or_down(title: str, description: str, query: Query, *, span: int = 12) -> statetimeline.Panel:
    """Show bars over time: 1 is up, 0 is lost."""
    states = {"0": models.ValueMappingResult(text="lost", color=RED), "1": models.ValueMappingResult("up", GREEN)}
    return (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .mappings([models.ValueMap(options=states)])
        .thresholds(_thresholds([models.Threshold(None, RED), models.Threshold(1, GREEN)]))
        .legend(common.VizLegendOptions().show_legend(False).placement(looks.LegendPlacement.BOTTOM))
        .show_value(looks.VisibilityMode.NEVER)
        .line_width(0)
        .fill_opacity(70)
        .height(8)
        .span(span)
        .with_target(_target(query, 0))
    )


Panel = stat.Panel | timeseries.Panel | statetimeline.Panel


def page(uid: str, title: str, description: str, rows: dict[str, Sequence[Panel]]) -> models.Dashboard:
    """Build a dashboard with a line of links to the others. The first row has no heading: a reader comes for it."""
    built = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["duebell"])
        .time("now-3h", "now")
        .refresh("10s")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .link(
            dashboard.DashboardLink("Duebell")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags(["duebell"])
            .keep_time(True)
            .include_vars(True)
        )
    )
    ids = count(1)
    for heading, panels in rows.items():
        if heading:
            built.with_row(dashboard.Row(heading).id(next(ids)))
        for panel in panels:
            built.with_panel(panel.id(next(ids)))
    return built.build()


def quantiles(histogram: str, window: str = "$__rate_interval", by: str = "") -> list[Query]:
    """Return queries for the median and for the 99th percentile."""
    labels = f"le, {by}" if by else "le"
    legend = f"{{{{{by}}}}} " if by else ""
    return [
        Query(f"histogram_quantile({q}, sum by ({labels}) (rate({histogram}[{window}])))", f"{legend}{name}")
        for q, name in ((0.5, "half within"), (0.99, "99 % within"))
    ]


def _thresholds(steps: list[models.Threshold]) -> dashboard.ThresholdsConfig:
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def _target(query: Query, place: int) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .expr(query.expr)
        .legend_format(query.legend)
        .range()
        .ref_id("ABCDEFGHIJ"[place])
        .datasource(SOURCE)
    )


def _link_to(name: str, uid: str) -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink(name)
        .type(models.DashboardLinkType.LINK)
        .url(f"/d/{uid}")
        .keep_time(True)
        .include_vars(True)
    )
