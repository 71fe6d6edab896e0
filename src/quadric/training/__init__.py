"""Training on layers and arrays: backpropagation, the compiled loop's driver, optimisers.

`fit` in `loop` runs the epochs. What an epoch does is one of two steppers: `PerSample` (the
compiled loop) or `MiniBatch` (NumPy and BLAS). L-BFGS has no epochs and stands apart.
"""
