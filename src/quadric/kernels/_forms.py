"""Which numbers fill the lanes of the loops for the quadratic form: the table of thresholds.

z and dL/dx are computed with samples as lanes, or with neurons; dL/dP with inputs, or with neurons.
`python -m benchmarks.forms` measures the thresholds on a machine. The choice depends only on the
shape and the dtype, never on the machine or the number of threads. It does not change the bits of z
and dL/dP.
"""

Z, DX, DP = 1, 2, 4  # bits of the results that are computed with neurons as lanes

# Neurons are lanes if there are at most this many blocks of neurons, in all rows, per neuron.
MOST_BLOCKS = {Z: 0.6, DX: 0.2}
# For dL/dP, inputs as lanes cost as much as this many further inputs: a register is partly empty
# at the diagonal, and numbers are stored one by one, once for all samples.
DIAGONAL_INPUTS, STORING_SAMPLES, FEWEST_NEURONS = 32, 48, 8


def forms(B: int, n: int, m: int, lanes: int) -> int:
    """The results for which neurons are lanes: a sum of Z, DX and DP."""
    blocks = -(-m // lanes)
    inputs = float(n + DIAGONAL_INPUTS)
    if m >= FEWEST_NEURONS:
        inputs += STORING_SAMPLES * n / max(B, 1)
    return (
        Z * (B * blocks <= MOST_BLOCKS[Z] * m)
        + DX * (B * blocks <= MOST_BLOCKS[DX] * m)
        + DP * (lanes * blocks * n < m * inputs)
    )
