"""The compiled loops: per-sample SGD, and the quadratic form for a batch.

Only this package imports numba and llvmlite. It does not import any other part of quadric. Its
functions take arrays or addresses, update the numbers there in place and return numbers.

Start with `_sgd`, one epoch of per-sample SGD, and `_layout`, the memory it works on. `_rows` lists
the inputs of a sample, `_blocks` computes the passes of one layer, `_equations` has the equations
of a block of neurons, and `_activations` and `_losses` hold the functions they are named after.
`_quadratic_form` and `_quadratic_form_loops` compute x'Qx for a batch and its gradients, and
`_elementwise` applies activations to arrays. All of these modules use `_lanes`, which works on
numbers in SIMD registers, and `_compiling`, which compiles the loops and caches them.
"""
