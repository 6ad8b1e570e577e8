"""`python -m shared.ready`, which the health checks of containers run."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from stack.ports import free_port
from tests.support.services import ROOT


@contextmanager
def a_service(status: int) -> Iterator[int]:
    """Listen on a port, and answer /readyz with this status and all else with 404."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def ask(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "shared.ready", *arguments],
        cwd=ROOT,
        env={**os.environ, "http_proxy": "http://127.0.0.1:9", "no_proxy": "", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.parametrize(("status", "expected"), [(200, 0), (503, 1)])
def test_the_exit_status_is_what_the_service_says_of_itself(status: int, expected: int) -> None:
    with a_service(status) as port:
        assert ask(METRICS_PORT=str(port)).returncode == expected
        assert ask(f"http://127.0.0.1:{port}/readyz").returncode == expected


def test_a_service_that_does_not_listen_is_not_ready_and_that_is_said() -> None:
    outcome = ask(METRICS_PORT=str(free_port()))
    assert outcome.returncode == 1
    assert "Connection refused" in outcome.stderr
