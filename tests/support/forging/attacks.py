"""Forged files of a kind that once did harm, each based on a fixture.

An attack changes the description and the tensors of `fixtures/forgery_NAME.quadric` in place.
"""

import numpy as np

FAR = 10**8
CACHE = "/tmp/quadric_forged_cache"


def _step(description, *way):
    """Return the description of a step, given its index in the pipeline and in inner steps."""
    found = description["model"]["parameters"]["steps"][way[0]]["items"][1]
    for place in way[1:]:
        found = found["facts"]["transformers"][place]["items"][1]
    return found


def _array(tensors, name, values):
    values = np.asarray(values)
    tensors[name] = values
    return {"type": "array", "dtype": values.dtype.name, "tensor": name}


def outputs_far_apart(description, tensors):
    """`predict` wrote outside its memory."""
    _step(description, 0)["facts"]["_n_features_outs"] = [FAR, 5 - FAR]


def outputs_far_apart_in_columns(description, tensors):
    _step(description, 0, 1)["facts"]["_n_features_outs"] = [FAR, 6 - FAR]


def rare_categories_from_nowhere(description, tensors):
    """`predict` read and wrote outside its memory."""
    _step(description, 0)["facts"].update(
        infrequent=[_array(tensors, "indices.0", [0]), None],
        _default_to_infrequent_mappings=[_array(tensors, "map.0", [FAR, 0, 1]), None],
    )


def rare_categories_out_of_range(description, tensors):
    _step(description, 0)["facts"]["infrequent"] = [_array(tensors, "indices.0", [FAR]), None]


def mapping_of_rare_categories(description, tensors):
    name = next(name for name in tensors if ".infrequent." in name)
    tensors[name] = np.full_like(tensors[name], 2**40)


def negative_mapping(description, tensors):
    name = next(name for name in tensors if ".infrequent." in name)
    tensors[name] = np.full_like(tensors[name], -FAR)


def cache_of_a_pipeline(description, tensors):
    """`clone(model).fit` used a cache chosen by the attacker and executed its contents."""
    description["model"]["parameters"]["memory"] = CACHE


def cache_of_an_inner_pipeline(description, tensors):
    _step(description, 0, 0)["parameters"]["memory"] = CACHE


def many_processes(description, tensors):
    """`predict` started 42 processes."""
    _step(description, 0)["parameters"]["n_jobs"] = 40


def names_without_end(description, tensors):
    """`explain` built names until memory was exhausted."""
    _step(description, 0)["facts"]["n_features_in_"] = 2**63 - 1


def nested(depth):
    """Return an empty list inside this many lists."""
    value = []
    for _ in range(depth):
        value = [value]
    return value


def lists_in_a_parameter(description, tensors):
    """Loading took 20 times the file's size in memory: the lists were parsed and then copied."""
    last = _step(description, 2)
    last["parameters"]["hidden_layer_sizes"] = [nested(8)] * 4400
    tensors["steps.2.loss_curve_"] = np.zeros(36_000)


def lists_beside_texts(description, tensors):
    """Short strings take eight times their size in memory; the header took eight times the file."""
    texts = "\u0100" * 20_000
    tensors["texts"] = np.frombuffer(texts.encode(), dtype=np.uint8)
    tensors["texts.lengths"] = np.full(20_000, 2)
    named = {"type": "array", "dtype": "object", "tensor": "texts", "others": []}
    _step(description, 0)["facts"]["feature_names_in_"] = named
    description["extra"] = {"lists": [[[]]] * 8_000}


ATTACKS = {
    "outputs far apart": ("encoder", outputs_far_apart),
    "outputs far apart in columns": ("rare", outputs_far_apart_in_columns),
    "rare categories from nowhere": ("encoder", rare_categories_from_nowhere),
    "rare categories out of range": ("encoder", rare_categories_out_of_range),
    "mapping of rare categories": ("rare", mapping_of_rare_categories),
    "negative mapping of rare categories": ("rare", negative_mapping),
    "cache of a pipeline": ("numbers", cache_of_a_pipeline),
    "cache of an inner pipeline": ("columns", cache_of_an_inner_pipeline),
    "many processes": ("columns", many_processes),
    "names without end": ("numbers", names_without_end),
    "lists in a parameter": ("numbers", lists_in_a_parameter),
    "lists beside texts": ("numbers", lists_beside_texts),
}
