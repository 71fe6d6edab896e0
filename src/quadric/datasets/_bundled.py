"""Images that come with scikit-learn."""

import numpy as np

from quadric.datasets._image_data import ImageData

TRAINING = 1297


def digits() -> ImageData:
    """The 1797 handwritten digits of 8 x 8 pixels that come with scikit-learn.

    The split is fixed: the first 1297 images to train with, the last 500 to test with.

    >>> data = digits()
    >>> data.X_train.shape, data.X_test.shape, data.largest
    ((1297, 64), (500, 64), 16)
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    pixels, labels = X.astype(np.uint8), y.astype(np.int64)
    return ImageData(
        name="digits",
        X_train=pixels[:TRAINING],
        y_train=labels[:TRAINING],
        X_test=pixels[TRAINING:],
        y_test=labels[TRAINING:],
        largest=16,
        shape=(8, 8),
        source="scikit-learn's load_digits: images 0 to 1296 to train, 1297 to 1796 to test",
    )
