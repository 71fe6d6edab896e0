"""What the outputs of a layer are: their names, and the meaning of z and of its sign."""

from typing import Any

from quadric.explain._model import SelectedLayer


def uses_softmax(selected: SelectedLayer) -> bool:
    """Whether the layer's outputs are the scores of a softmax."""
    return selected.is_last and selected.network.activations[-1] == "softmax"


def shows_kinds(selected: SelectedLayer) -> bool:
    """Whether the surface z = 0 is a boundary of the model in numeric inputs."""
    logistic = selected.is_last and selected.network.activations[-1] == "logistic"
    return logistic and not selected.space.encodings.any()


def meaning(selected: SelectedLayer, target: str) -> str:
    """What z is, and what the sign of a term means."""
    last = selected.network.activations[-1]
    if not selected.is_last:
        return "z is the neuron's value before its activation; a positive term raises it."
    if uses_softmax(selected):
        return (
            "z of a class is its score minus the mean score of all classes. A positive term raises "
            "the probability of the class relative to the others, and the model predicts the class "
            "with the largest z."
        )
    single = selected.network.n_outputs == 1 and not selected.multilabel
    if last == "logistic" and single and len(selected.labels) > 1:
        no, yes = selected.labels[-2:]
        return (
            f"z = log(p({yes}) / p({no})). A positive term speaks for {yes} and a negative one for "
            f"{no}; the model predicts {yes} where z > 0."
        )
    if last == "logistic":
        return (
            "z is the log-odds of a class. A positive term raises its probability, which exceeds "
            "1/2 where z > 0."
        )
    if last == "exponential":
        return f"z is the logarithm of the predicted {target}; a positive term raises it."
    if _is_regression(selected):
        return f"A positive term raises the predicted {target}."
    return f"z is the neuron's value before its activation, {last}; a positive term raises it."


def _is_regression(selected: SelectedLayer) -> bool:
    fitted = selected.name != "Network"  # the outputs of a bare network may be anything
    return selected.is_last and fitted and selected.network.activations[-1] == "identity"


def outputs(selected: SelectedLayer, count: int, target: str) -> list[tuple[Any, str]]:
    """The label of each output, and the left-hand side of its equation."""
    if _is_regression(selected):
        names = [target] if count == 1 else [f"{target} {k}" for k in range(count)]
        return [(name, name) for name in names]
    if selected.is_last and selected.classes is not None:
        labels = selected.labels[-count:]  # a single output is the score of the second class
        return [(label, "z" if count == 1 else f"z({label})") for label in labels]
    return [(f"neuron {k}", "z" if count == 1 else f"z{k}") for k in range(count)]
