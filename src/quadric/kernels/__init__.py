"""The compiled loops; nothing else in quadric imports numba.

- `lanes`: blocks of numbers in SIMD registers, of which the loops are made
- `compiling`: how they are compiled and cached
- `sgd`: per-sample SGD
- `triangles`: x'Qx of a batch and its derivatives
"""
