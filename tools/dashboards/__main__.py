"""`python -m tools.dashboards` writes the dashboards that Grafana loads, from what `tools/dashboards/pages` says."""

from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tools.dashboards.pages import DASHBOARD_PAGES

DASHBOARDS = Path(__file__).parents[2] / "grafana" / "dashboards"


def rendered() -> dict[Path, str]:
    """Return each file with its content."""
    pages = [page() for page in DASHBOARD_PAGES]
    return {
        DASHBOARDS / f"{page.uid}.json": JSONEncoder(sort_keys=True, indent=2).encode(page) + "\n" for page in pages
    }


if __name__ == "__main__":
    for file, text in rendered().items():
        file.write_text(text)
