"""The dashboards: an overview that answers the three questions of a night on call, and one page per service."""

from tools.dashboards.pages.consumer import consumer
from tools.dashboards.pages.delayed import delayed
from tools.dashboards.pages.delivery import delivery
from tools.dashboards.pages.overview import overview
from tools.dashboards.pages.producer import producer

DASHBOARD_PAGES = (overview, consumer, producer, delivery, delayed)
