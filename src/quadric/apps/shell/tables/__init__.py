"""Models for tables: read CSV and Parquet files, infer a schema, train, score and predict.

This is the only package that imports Polars. It depends on the estimators, but not on the CLI.
Start with `_training.train`; `streaming` trains on tables larger than memory.
"""

import importlib
from typing import TYPE_CHECKING, Any

from quadric.utils import require

require("polars", extra="cli", by="quadric.apps.shell.tables")

if TYPE_CHECKING:
    from quadric.apps.shell.tables._evaluation import Evaluation
    from quadric.apps.shell.tables._open_table import open_table
    from quadric.apps.shell.tables._options import ColumnOptions, Settings
    from quadric.apps.shell.tables._prediction import Predicted, predict
    from quadric.apps.shell.tables._saved_estimator import read_inputs
    from quadric.apps.shell.tables._schema import Schema
    from quadric.apps.shell.tables._source import Source
    from quadric.apps.shell.tables._table_format import TableFormat
    from quadric.apps.shell.tables._table_network import TableNetwork
    from quadric.apps.shell.tables._test_table import TestTable, evaluate_table
    from quadric.apps.shell.tables._training import Trained, train

# Names are imported on first use (PEP 562), so that a file that cannot be read is reported before
# scikit-learn is imported.
_HOMES = {
    "ColumnOptions": "_options",
    "Evaluation": "_evaluation",
    "Predicted": "_prediction",
    "Schema": "_schema",
    "Settings": "_options",
    "Source": "_source",
    "TableFormat": "_table_format",
    "TableNetwork": "_table_network",
    "TestTable": "_test_table",
    "Trained": "_training",
    "evaluate_table": "_test_table",
    "open_table": "_open_table",
    "predict": "_prediction",
    "read_inputs": "_saved_estimator",
    "train": "_training",
}

__all__ = [
    "ColumnOptions",
    "Evaluation",
    "Predicted",
    "Schema",
    "Settings",
    "Source",
    "TableFormat",
    "TableNetwork",
    "TestTable",
    "Trained",
    "evaluate_table",
    "open_table",
    "predict",
    "read_inputs",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"quadric.apps.shell.tables.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'quadric.apps.shell.tables' has no attribute {name!r}")
