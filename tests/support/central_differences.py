"""Central differences of functions of NumPy arrays."""

import numpy as np

EPSILON = 1e-6


def difference(function, array, *, symmetric=False):
    """Return central differences of function() for the entries of `array`, changed in place."""
    result = np.empty_like(array)
    for index in np.ndindex(array.shape):
        places = {index}
        if symmetric:
            places.add((*index[:-2], index[-1], index[-2]))
        value, sides = array[index], []
        for moved in (value + EPSILON, value - EPSILON):
            for place in places:
                array[place] = moved
            sides.append(function())
        for place in places:
            array[place] = value
        result[index] = (sides[0] - sides[1]) / (2 * EPSILON)
    return result
