"""Reproduction of published results on bilinear MLPs, which fold to one quadratic layer.

`_reproduction.py` is the experiment. Its runs use the same store and Dask runner as the studies.
`_training.py` trains a network (the only module that imports torch), `_measures.py` measures it and
`_models.py` saves it as a model file. `_published.py` lists the figures to compare with.
"""

from quadric.apps.paper.bilinear import _reproduction
from quadric.apps.paper.experiments import Experiment

BILINEAR = {
    "bilinear": Experiment(
        _reproduction.run,
        _reproduction.estimate,
        needs_images=True,
        needs_store=True,
        needs_fashion=True,
    )
}

__all__ = ["BILINEAR"]
