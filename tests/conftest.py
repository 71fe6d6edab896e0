"""The same examples in every run: a failure in the checks can be repeated by anyone."""

from hypothesis import settings

settings.register_profile("checks", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("checks")
