"""Webhook calls: the request, the addresses that it may go to, and the result. aiohttp speaks HTTP."""
