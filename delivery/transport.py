"""httpx's transport on aiohttp's connections, with what httpx-aiohttp would change left as it is: the address is called
as it was scheduled, escape for escape (some are signed), header names keep their spelling, and a reason phrase in some
other alphabet does not turn a 200 into an error.
"""

import aiohttp
import httpx
import yarl
from httpx_aiohttp.transport import AiohttpResponseStream


class WebhookTransport(httpx.AsyncBaseTransport):
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        timeout = request.extensions.get("timeout", {})
        try:
            response = await self._session.request(
                request.method,
                yarl.URL(str(request.url), encoded=True),
                headers=[(name.decode("ascii"), value.decode("latin-1")) for name, value in request.headers.raw],
                data=request.content or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(sock_connect=timeout.get("connect")),
            )
        except aiohttp.ClientError as error:
            # What it was is told by aiohttp's own class; what it says may hold the address.
            raise httpx.TransportError(type(error).__name__) from error
        return httpx.Response(
            status_code=response.status,
            headers=response.raw_headers,
            stream=AiohttpResponseStream(response),
            request=request,
        )
