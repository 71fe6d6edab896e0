"""Logs to which processes write a line for every run that they start."""

from pathlib import Path


def write_line(log, text):
    with Path(log).open("a") as file:
        file.write(f"{text}\n")


def lines(log):
    """Return the lines that have been written so far."""
    return log.read_text().splitlines() if log.exists() else []
