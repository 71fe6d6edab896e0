"""Tables in files (CSV, Parquet): what their columns are, models from them, predictions for them.

The only importer of Polars.
"""

from quadric._utils.extras import require

require("polars", extra="cli", by="quadric.tables")

from quadric.tables._prediction import Predicted, predict
from quadric.tables._schema import Schema, Wishes
from quadric.tables._source import Source, open_table
from quadric.tables._table_network import TableNetwork
from quadric.tables._training import Settings, Trained, train

__all__ = [
    "Predicted",
    "Schema",
    "Settings",
    "Source",
    "TableNetwork",
    "Trained",
    "Wishes",
    "open_table",
    "predict",
    "train",
]
