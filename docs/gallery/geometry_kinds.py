"""Six surfaces that one neuron can draw

The coefficients of a neuron determine the kind of its boundary: `Quadric.kind` names it. These are
six of the seventeen kinds in space. The meshes are computed from the axes of each surface, so every
vertex lies on it.
"""

import matplotlib.pyplot as plt
import numpy as np

from quadric.geometry import Quadric
from quadric.plotting import COLORS, plot_surface

shapes = [  # the diagonal of Q, w, b
    ([1.0, 0.6, 0.4], [0, 0, 0], -1.0),
    ([1.0, 1.0, -0.7], [0, 0, 0], -0.6),
    ([-1.0, -1.0, 0.7], [0, 0, 0], -0.4),
    ([0.8, 0.5, 0.0], [0, 0, -1], 0.0),
    ([0.8, -0.8, 0.0], [0, 0, -1], 0.0),
    ([1.0, 1.0, -1.0], [0, 0, 0], 0.0),
]
fig = plt.figure(figsize=(9, 7.2), layout="constrained")
fig.get_layout_engine().set(h_pad=0.12)
for k, (diagonal, w, b) in enumerate(shapes):
    ax = fig.add_subplot(2, 3, k + 1, projection="3d")
    surface = Quadric(np.diag(diagonal), w, b)
    plot_surface(surface, ax, extent=2.0, color=COLORS[k], alpha=0.75)
    ax.set_title(f"{surface.kind}\n{surface.equation(precision=2)}", fontsize=9)
    ax.tick_params(labelsize=7)
    ax.xaxis.labelpad = ax.yaxis.labelpad = 0
    ax.zaxis.labelpad = -3
fig.suptitle("Each of these surfaces is the boundary of one quadratic neuron")
