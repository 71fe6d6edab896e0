"""The `quadric` command, also `python -m quadric`."""

import sys


def main() -> None:
    """Run the command line, or print the line that installs it."""
    try:
        from quadric.cli import main as run
    except ImportError as error:  # the extra `cli` is not installed
        sys.exit(f"error: {error}")
    run()


if __name__ == "__main__":
    main()
