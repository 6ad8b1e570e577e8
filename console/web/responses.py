"""The middleware around every request: the path prefix, the security headers, and the time that a page takes."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from console.metrics import Metrics

# Nothing from elsewhere, nothing inline, in no frame. The pages draw their charts as SVG inside the document.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
KEEP_FOR_GOOD = "public, max-age=31536000, immutable"


class Surroundings:
    def __init__(self, app: ASGIApp, prefix: str, metrics: Metrics) -> None:
        self._app = app
        self._prefix = prefix
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        # A proxy may keep the prefix or cut it off.
        if self._prefix and (path == self._prefix or path.startswith(self._prefix + "/")):
            path = path.removeprefix(self._prefix) or "/"
        is_static = path.startswith("/static/")
        began_at = time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                raw = list(message.get("headers", []))
                cached = KEEP_FOR_GOOD if is_static and message["status"] == 200 else "no-store"
                for name, value in {**HEADERS, "Cache-Control": cached}.items():
                    raw.append((name.lower().encode(), value.encode()))
                message = {**message, "headers": raw}
                if not is_static and not path.endswith("/live"):
                    self._metrics.seconds(path.lstrip("/").partition("/")[0] or "now").observe(
                        time.perf_counter() - began_at
                    )
            await send(message)

        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send_with_headers)
