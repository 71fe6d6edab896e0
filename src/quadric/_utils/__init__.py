"""Non-mathematical helpers: user arrays and options, files, memory, text, BLAS threads.

The package is private, so its modules need no underscore. It imports only `config` and `errors`.
"""
