"""Settings for all tests."""

import os

from hypothesis import HealthCheck, settings

# Reproducible by default, so that a red run stays red; `HYPOTHESIS_PROFILE=explore` looks further.
settings.register_profile("default", derandomize=True, deadline=None, max_examples=50)
settings.register_profile(
    "explore", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
