"""Eigenvalues of a symmetric matrix whose rows are of very different size."""

import numpy as np

from quadric._utils.arrays import Array

LARGEST = 40  # dimensions; beyond, Jacobi's method takes too long here
SWEEPS = 40


def graded_eigh(Q: Array, rank: int) -> tuple[Array, Array]:
    """The eigenvalues of largest size, the others as zeros; eigenvectors as rows.

    By Jacobi's method, which finds the small eigenvalues of a graded matrix to about their own
    digits, where LAPACK's methods find them to those of the largest.
    """
    n = len(Q)
    if n > LARGEST:
        eigenvalues, P = np.linalg.eigh(Q)
    else:
        eigenvalues, P = _jacobi(Q / np.abs(Q).max())
        eigenvalues = eigenvalues * np.abs(Q).max()
    small = np.argsort(-np.abs(eigenvalues))[rank:]
    eigenvalues[small] = 0.0
    return eigenvalues, P.T


def _jacobi(Q: Array) -> tuple[Array, Array]:
    A, P = Q.copy(), np.eye(len(Q))
    n = len(A)
    eps = float(np.finfo(np.float64).eps)
    for _ in range(SWEEPS):
        turned = False
        for i in range(n - 1):
            for j in range(i + 1, n):
                # small beside both of its diagonal entries, and not beside the largest of all
                if abs(A[i, j]) <= eps * np.sqrt(abs(A[i, i] * A[j, j])) or A[i, j] == 0:
                    continue
                turned = True
                theta = (A[j, j] - A[i, i]) / (2 * A[i, j])
                t = np.copysign(1.0, theta) / (abs(theta) + np.hypot(1.0, theta))
                c = 1 / np.hypot(1.0, t)
                R = np.array([[c, c * t], [-c * t, c]])
                pivot = A[i, j]
                di, dj = A[i, i] - t * pivot, A[j, j] + t * pivot
                A[:, [i, j]] = A[:, [i, j]] @ R
                A[[i, j]] = A[:, [i, j]].T
                A[i, i], A[j, j], A[i, j], A[j, i] = di, dj, 0.0, 0.0
                P[:, [i, j]] = P[:, [i, j]] @ R
        if not turned:
            break
    return np.diag(A).copy(), P
