"""Non-mathematical helpers: user arrays and options, files, memory, text and BLAS threads.

The package is private, so the names of its modules do not begin with an underscore. It imports only
`config` and `errors`.
"""
