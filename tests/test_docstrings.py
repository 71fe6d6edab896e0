"""Docstrings of public names follow numpydoc."""

import importlib
import inspect

import pytest

import quadric

validation = pytest.importorskip("numpydoc.validate")

PACKAGES = (
    "quadric",
    "quadric.certify",
    "quadric.cluster",
    "quadric.config",
    "quadric.convert",
    "quadric.datasets",
    "quadric.errors",
    "quadric.explain",
    "quadric.geometry",
    "quadric.onnx",
    "quadric.plotting",
    "quadric.reference",
    "quadric.torch",
)
HOOKS = {"extra_repr"}  # methods that only torch calls
NOT_ASKED_FOR = {
    "ES01",  # an extended summary
    "EX01",  # an example for every name: the pages in docs/ have them
    "SA01",  # See Also
    "SS02",  # a capital letter: a summary may begin with a symbol (z, delta)
    "PR08",  # the same for the description of a parameter
    "PR09",  # a period at the end of every description
    "RT04",
    "RT05",
    "GL01",  # text on the line after the quotes
    "GL03",
}


def public_names():
    """Yield each public class and function, and the public methods of the classes."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            if package != "quadric" and getattr(value, "__name__", "") in quadric.__all__:
                continue
            yield f"{package}.{name}"
            if inspect.isclass(value):
                methods = [key for key, method in vars(value).items() if inspect.isfunction(method)]
                yield from (
                    f"{package}.{name}.{key}"
                    for key in methods
                    if key[0] != "_" and key not in HOOKS
                )


def faults(name):
    """List what numpydoc finds wrong with a docstring."""
    errors = validation.validate(name)["errors"]
    return [f"{code} {text}" for code, text in errors if code not in NOT_ASKED_FOR]


@pytest.mark.parametrize("name", sorted(set(public_names())))
def test_docstring_follows_numpydoc(name):
    assert not faults(name)


def undocumented(x):
    return 1


def test_a_missing_docstring_is_detected():
    assert faults(f"{__name__}.undocumented")
