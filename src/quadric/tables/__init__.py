"""Models for tables: read CSV and Parquet files, infer a schema, train, score and predict.

This is the only package that imports Polars. It depends on the estimators, but not on the CLI.
Start with `_training.train`; `streaming` trains on tables larger than memory.
"""

from quadric._utils.extras import require

require("polars", extra="cli", by="quadric.tables")

from quadric.tables._evaluation import Evaluation
from quadric.tables._prediction import Predicted, predict
from quadric.tables._schema import Schema
from quadric.tables._schema_inference import ColumnOptions
from quadric.tables._source import Source, open_table
from quadric.tables._table_network import TableNetwork
from quadric.tables._test_table import TestTable, evaluate_table
from quadric.tables._training import Settings, Trained, train

__all__ = [
    "ColumnOptions",
    "Evaluation",
    "Predicted",
    "Schema",
    "Settings",
    "Source",
    "TableNetwork",
    "TestTable",
    "Trained",
    "evaluate_table",
    "open_table",
    "predict",
    "train",
]
