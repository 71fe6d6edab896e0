"""The shapes (B, n, m) at which quadratic layers are timed: samples, inputs and neurons."""

SHAPES = [
    (128, 32, 10),
    (128, 64, 64),
    (256, 128, 128),
    (64, 784, 10),
    (256, 256, 256),
    (1024, 64, 10),
]
# from one row to many, with few and many inputs and neurons
TORCH_SHAPES = [
    (1, 8, 2),
    (8, 16, 4),
    (32, 32, 10),
    (128, 32, 10),
    (128, 64, 64),
    (512, 16, 128),
    (1024, 64, 10),
    (4096, 32, 32),
    (256, 128, 128),
    (64, 784, 10),
    (16, 2048, 4),
    (1, 64, 10),
    (1, 784, 10),
    (32, 784, 10),
    (10000, 4, 3),
]
BILINEAR_LIMIT = 1e9  # number of multiplications above which nn.Bilinear takes many seconds
