"""Forged files of a kind that once did harm, each based on a fixture.

An attack changes the description and the tensors of `fixtures/forgery_NAME.quadric` in place.
"""

import numpy as np

from quadric.files._describe import encode_array

FAR = 10**8
CACHE = "/tmp/quadric_forged_cache"


def step_of(description, way):
    """Return the description of a step, given its index in the pipeline and in inner steps."""
    found = description["model"]
    for level, place in enumerate(way):
        steps = found["facts"]["transformers"] if level else found["parameters"]["steps"]
        found = steps[place]["items"][1]
    return found


def setting(way, part, **values):
    """Return an attack that sets parameters or facts of a step."""

    def attack(description, tensors):
        step_of(description, way)[part].update(values)

    return attack


def rare_categories(indices, mapping=None):
    """Return an attack with indices of rare categories, and perhaps a mapping of categories."""

    def attack(description, tensors):
        facts = step_of(description, [0])["facts"]
        given = {"infrequent": indices, "_default_to_infrequent_mappings": mapping}
        for name, values in given.items():
            if values is not None:
                facts[name] = [encode_array(np.array(values), name, tensors, None), None]

    return attack


def mapping_of_rare_categories(value):
    def attack(description, tensors):
        name = next(name for name in tensors if ".infrequent." in name)
        tensors[name] = np.full_like(tensors[name], value)

    return attack


def nested(depth):
    """Return an empty list inside this many lists."""
    value = []
    for _ in range(depth):
        value = [value]
    return value


def lists_in_a_parameter(description, tensors):
    """Loading took 20 times the file's size in memory: the lists were parsed and then copied."""
    step_of(description, [2])["parameters"]["hidden_layer_sizes"] = [nested(8)] * 4400
    tensors["steps.2.loss_curve_"] = np.zeros(36_000)


def lists_beside_texts(description, tensors):
    """Short strings take eight times their size in memory; the header took eight times the file."""
    texts = encode_array(np.array(["\u0100"] * 20_000, dtype=object), "texts", tensors, None)
    step_of(description, [0])["facts"]["feature_names_in_"] = texts
    description["extra"] = {"lists": [[[]]] * 8_000}


ATTACKS = {
    # `predict` wrote outside its memory
    "outputs far apart": ("encoder", setting([0], "facts", _n_features_outs=[FAR, 5 - FAR])),
    "outputs far apart in columns": (
        "rare",
        setting([0, 1], "facts", _n_features_outs=[FAR, 6 - FAR]),
    ),
    # `predict` read and wrote outside its memory
    "rare categories from nowhere": ("encoder", rare_categories([0], mapping=[FAR, 0, 1])),
    "rare categories out of range": ("encoder", rare_categories([FAR])),
    "mapping of rare categories": ("rare", mapping_of_rare_categories(2**40)),
    "negative mapping of rare categories": ("rare", mapping_of_rare_categories(-FAR)),
    # `clone(model).fit` used a cache chosen by the attacker and executed its contents
    "cache of a pipeline": ("numbers", setting([], "parameters", memory=CACHE)),
    "cache of an inner pipeline": ("columns", setting([0, 0], "parameters", memory=CACHE)),
    # `predict` started 42 processes
    "many processes": ("columns", setting([0], "parameters", n_jobs=40)),
    # `explain` built names until memory was exhausted
    "names without end": ("numbers", setting([0], "facts", n_features_in_=2**63 - 1)),
    "lists in a parameter": ("numbers", lists_in_a_parameter),
    "lists beside texts": ("numbers", lists_beside_texts),
}
