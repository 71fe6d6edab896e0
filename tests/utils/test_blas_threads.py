"""How the threads of BLAS are shared with the compiled loops."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from quadric import Network
from quadric.utils._memory_and_threads import (
    blas_threads,
    loop_threads,
    one_blas_thread,
    threads_for_loops,
)


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != 2:
            pytest.skip("this BLAS has a fixed number of threads")
        yield


def test_loops_get_the_threads_and_blas_keeps_one():
    with threads_for_loops():
        assert (loop_threads(), blas_threads()) == (2, 1)
        with threads_for_loops():
            assert (loop_threads(), blas_threads()) == (2, 1)
        assert (loop_threads(), blas_threads()) == (2, 1)
    assert (loop_threads(), blas_threads()) == (2, 2)


def test_an_error_restores_the_threads():
    with pytest.raises(KeyError), threads_for_loops():
        raise KeyError
    assert (loop_threads(), blas_threads()) == (2, 2)


def test_loops_respect_the_limit_to_one_thread():
    with one_blas_thread(), threads_for_loops():
        assert (loop_threads(), blas_threads()) == (1, 1)


def test_blas_has_one_thread_until_the_last_user_ends():
    def numbers():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    before = numbers()
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert numbers() == {1}
    second.__exit__(None, None, None)
    assert numbers() == before


def test_another_thread_does_not_get_the_threads_of_this_one():
    found = []
    with threads_for_loops():
        other = threading.Thread(target=lambda: found.append(loop_threads()))
        other.start()
        other.join()
    assert found == [1]


@pytest.mark.parametrize("samples", [10, 2000])
def test_gradients_do_not_depend_on_the_number_of_threads(samples):
    rng = np.random.default_rng(0)
    net = Network.create(100, [("quadratic", 10, "softmax")], rng=0)
    X, Y = rng.normal(size=(samples, 100)) / 10, np.eye(10)[rng.integers(10, size=samples)]
    loss, (grad,) = net.gradients(X, Y)
    with one_blas_thread():
        again, (same,) = net.gradients(X, Y)
    assert loss == again
    np.testing.assert_array_equal(grad.packed, same.packed)
