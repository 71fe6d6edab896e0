"""A report of experiments: one page that needs nothing else, CSV and PNG files beside it."""

from quadric.paper.report._files import write_report

__all__ = ["write_report"]
