"""Logs to which processes write a line for every run that they start."""


def lines(log):
    """Return the lines that have been written so far."""
    return log.read_text().splitlines() if log.exists() else []
