"""`python -m shared.ready [url]` asks a service in the same container whether it is ready, for a health check.

The exit status is 0 if the answer is 200, else 1. Without a URL it asks for /readyz at METRICS_PORT.
"""

import os
import sys
from http.client import HTTPException
from urllib.request import ProxyHandler, build_opener

TIMEOUT_SECONDS = 5.0


def main() -> int:
    port = os.environ.get("METRICS_PORT", "9100")
    url = sys.argv[1] if len(sys.argv) > 1 else f"http://127.0.0.1:{port}/readyz"
    try:
        # No proxy of the environment: the service is in this container.
        with build_opener(ProxyHandler({})).open(url, timeout=TIMEOUT_SECONDS) as answer:
            return 0 if answer.status == 200 else 1
    except (OSError, HTTPException, ValueError) as error:  # an answer of 400 and more is an OSError, too
        sys.stderr.write(f"{url}: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
