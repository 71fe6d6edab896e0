"""The shapes (B, n, m) at which quadratic layers are timed: samples, inputs and neurons."""

SHAPES = [
    (128, 32, 10),
    (128, 64, 64),
    (256, 128, 128),
    (64, 784, 10),
    (256, 256, 256),
    (1024, 64, 10),
]
BILINEAR_LIMIT = 1e9  # number of multiplications above which nn.Bilinear takes many seconds
