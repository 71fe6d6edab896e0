"""The compiled loops; nothing else in quadric imports numba.

- `lanes`: blocks of numbers in SIMD registers, of which the loops are made
- `compiling`: how they are compiled and cached
- `sgd`: an epoch of per-sample SGD, with its parts:
  `layout` (memory, codes, groups of arguments), `rows` (samples as lists of inputs), `blocks` (the
  passes of one layer), `affine` and `pairs` (its equations), `activations`, `losses`
- `triangles`: x'Qx of a batch and its derivatives
"""
