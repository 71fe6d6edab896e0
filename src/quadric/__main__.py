"""`python -m quadric`."""

from quadric.cli import main

if __name__ == "__main__":
    main()
