"""A report of experiments: one HTML page that needs nothing else, and CSV and PNG files beside it."""

from quadric.report.files import write_report

__all__ = ["write_report"]
