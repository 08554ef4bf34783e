"""Settings of the drill's worker and beat: as in production, but the bell rings every second."""

from estate.config.settings import *  # noqa: F403
from estate.config.settings import CELERY_BEAT_SCHEDULE

CELERY_BEAT_SCHEDULE["collect what is due"] |= {"schedule": 1.0}
