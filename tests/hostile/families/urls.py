"""Webhook URLs: what is no address to call is refused when it is scheduled, and so is an address on the inside that is
written in the URL. Where a name leads is not asked here: a name can change its mind until the call, so that is the
delivery service's to judge, at the socket.
"""

from collections.abc import Iterator

from tests.hostile.case import Case, parked, stored, with_webhook
from tests.hostile.urls import ODD_BUT_TAKEN, named_inside_urls, refused_urls, written_inside_urls


def cases() -> Iterator[Case]:
    for number, url in enumerate(refused_urls(8080)):
        yield parked(f"url refused: {url[:60]!r}, {number}", "webhook.url", with_webhook(url=url))
    for number, url in enumerate(written_inside_urls(8080)):
        yield parked(f"url inside: {url[:60]!r}, {number}", "webhook.url", with_webhook(url=url))
    for number, url in enumerate(named_inside_urls(8080)):
        yield stored(f"url of a name inside: {url[:60]!r}, {number}", with_webhook(url=url))
    for number, url in enumerate(ODD_BUT_TAKEN):
        yield stored(f"url taken: {url[:60]!r}, {number}", with_webhook(url=url))
