# One image for all services: `python -m consumer`, `producer`, `delivery`, `shared.migrate`, `examples.receiver`.
FROM python:3.11-slim-bookworm AS packages
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes --target /packages -r requirements.lock

FROM python:3.11-slim-bookworm
ENV PYTHONPATH=/packages PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
RUN useradd --system --uid 10001 --no-create-home duebell
WORKDIR /app
COPY --from=packages /packages /packages
COPY shared shared
COPY consumer consumer
COPY producer producer
COPY delivery delivery
COPY examples examples
USER duebell
CMD ["python", "-m", "consumer"]
