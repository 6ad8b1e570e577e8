"""The dashboards: an overview that answers the three questions of a night on call, and one page per service."""

from grafana.pages.consumer import consumer
from grafana.pages.delivery import delivery
from grafana.pages.overview import overview
from grafana.pages.producer import producer

PAGES = (overview, consumer, producer, delivery)
