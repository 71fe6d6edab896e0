"""Import a test module of scikit-learn with some classes replaced by ours."""

import importlib
import importlib.util
import inspect
from types import CodeType
from unittest import mock

import pytest
import sklearn

VERSION = "1.9"  # the minor version for which `differences` lists the expected failures


def import_tests(name, package, classes, *, without=()):
    """Return the tests of module `name`, which finds our `classes` in `package`; some are left out.

    The result has the tests by name, and the marks of their module together with `slow`.
    """
    installed = ".".join(sklearn.__version__.split(".")[:2])
    if installed != VERSION:
        pytest.skip(
            f"the expected differences are those of scikit-learn {VERSION}, not {installed}",
            allow_module_level=True,
        )
    try:
        importlib.import_module(name)  # so that nothing else is imported while it is patched
    except ImportError as error:
        pytest.skip(f"scikit-learn is installed without its tests: {error}", True)
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.multiple(package, **classes):
        spec.loader.exec_module(module)
    tests = {
        name: value
        for name, value in vars(module).items()
        if name.startswith("test_") and name not in without
    }
    marks = getattr(module, "pytestmark", [])
    marks = marks if isinstance(marks, list) else [marks]
    # our settings turn all warnings into errors
    return tests | {"pytestmark": [pytest.mark.filterwarnings("ignore"), *marks, pytest.mark.slow]}


def uses(item, classes):
    """Whether a collected test uses one of the replaced classes."""
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    names = _names(inspect.unwrap(item.function).__code__)
    return bool(names & set(classes)) or any(
        value is ours for value in given for ours in classes.values()
    )


def _names(code):
    """All names in the code of a function and of the functions inside it."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, inner))
