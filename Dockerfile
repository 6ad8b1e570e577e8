# One image for all: `python -m consumer`, `producer`, `delivery`, `console`, `shared.migrate`, `shared.topology`, and
# the example receiver; and the command line, `duebell`.
FROM python:3.13.5-slim-bookworm AS packages
WORKDIR /build
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes --target /packages -r requirements.lock

FROM python:3.13.5-slim-bookworm
ENV PYTHONPATH=/packages PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
RUN useradd --system --uid 10001 --no-create-home duebell
WORKDIR /app
COPY --from=packages /packages /packages
COPY shared shared
COPY consumer consumer
COPY producer producer
COPY delivery delivery
COPY console console
COPY examples examples
COPY cli cli
COPY duebell duebell
# A checkout whose files only their owner may read makes an image that its user can read all the same.
RUN chmod -R a+rX /app && ln -s /app/duebell /usr/local/bin/duebell
USER 10001
CMD ["python", "-m", "consumer"]
