"""The compiled loops: per-sample SGD, and the quadratic form of a batch.

Only this package imports numba and llvmlite; it imports nothing else from quadric. Functions take
arrays or addresses, update them in place and return numbers.

Start with `_sgd`, one epoch of per-sample SGD, and `_layout`, the memory it works on. `_rows` lists
the inputs of a sample, `_blocks` computes the passes of one layer, `_equations` has the equations
of a block of neurons, and `_activations` and `_losses` hold the functions they are named after.
`_quadratic_form` and `_quadratic_form_loops` compute x'Qx of a batch and its gradients, and
`_elementwise` applies activations to arrays. All of them use `_lanes`, numbers in SIMD registers,
and `_compiling`, which compiles the loops and caches them.
"""
