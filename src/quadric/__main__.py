"""The `quadric` command, also available as `python -m quadric`."""

import sys


def main() -> None:
    """Run the command-line interface.

    If packages that it needs are missing, print the pip command that installs them.
    """
    try:
        from quadric.apps.shell import main as run
    except ImportError as error:  # the `cli` extra is not installed
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
