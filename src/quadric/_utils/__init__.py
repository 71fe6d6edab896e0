"""Helpers without mathematics: arrays and options from users, files, memory, text, BLAS threads.

The package is private, so its modules need no underscore. It imports `config` and `errors` only.
"""
