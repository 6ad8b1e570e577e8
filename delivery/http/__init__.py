"""Webhook calls: what is sent, where it may go, and what came of it. aiohttp speaks HTTP."""
