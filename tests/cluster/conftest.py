"""Clusters of real processes."""

import pytest


@pytest.fixture
def new_cluster(tmp_path):
    """Start clusters, and stop their remaining processes."""
    from tests.support.clusters import Cluster

    made = []

    def make(*threads, **environment):
        made.append(Cluster(tmp_path, **environment))
        for count in threads:
            made[-1].add_worker(threads=count)
        return made[-1].wait(len(threads)) if threads else made[-1]

    yield make
    for one in made:
        one.close()
