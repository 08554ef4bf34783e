# One image for web, worker and scheduler; PostgreSQL and the broker are servers of their own (see docker-compose.yml).
FROM python:3.12-slim AS dependencies
RUN python -m venv /opt/venv
COPY requirements/run.lock /tmp/run.lock
RUN /opt/venv/bin/python -m pip install --no-cache-dir --require-hashes --requirement /tmp/run.lock

FROM python:3.12-slim
RUN useradd --system --uid 10001 --create-home --home-dir /data estate
COPY --from=dependencies /opt/venv /opt/venv
WORKDIR /app
COPY manage.py pyproject.toml ./
COPY estate estate
COPY accounting accounting
COPY collectors collectors
COPY templates templates
COPY static static
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 ESTATE_DATA=/data STATIC_ROOT=/app/collected
# The key is for this step only: settings want one, and none may end up in the image.
RUN ESTATE_DATA=/tmp/build SECRET_KEY=only-for-collecting-static-files-at-build-time \
    python manage.py collectstatic --no-input --verbosity 0 && rm -rf /tmp/build
USER estate
VOLUME /data
EXPOSE 8000
CMD ["python", "manage.py", "up", "web", "--bind", "0.0.0.0"]
