"""Models for tables: read CSV and Parquet files, infer a schema, train, score and predict.

This is the only package that imports Polars. It depends on the estimators, but not on the CLI.
Start with `_training.train`; `_streaming` trains on tables larger than memory.
"""

import gc
import importlib
import sys
from typing import TYPE_CHECKING, Any

from quadric.utils import require

require("polars", extra="cli", by="quadric.apps.shell.tables")

if TYPE_CHECKING:
    from quadric.apps.shell.tables._certification import (
        CertifiedTable as CertifiedTable,
        certify_table as certify_table,
    )
    from quadric.apps.shell.tables._evaluation import (
        MODEL as MODEL,
        Evaluation,
        shown as shown,
    )
    from quadric.apps.shell.tables._held_out import TestTable, evaluate_table
    from quadric.apps.shell.tables._on_cluster import (
        predict_on_cluster as predict_on_cluster,
        train_on_cluster as train_on_cluster,
    )
    from quadric.apps.shell.tables._one_row import (
        contributions_of_row as contributions_of_row,
        effects_of_row as effects_of_row,
        nearest_classes as nearest_classes,
    )
    from quadric.apps.shell.tables._optimum import optimum as optimum
    from quadric.apps.shell.tables._options import (
        ColumnOptions,
        Settings,
        Stream,
        TableFormat,
        check_columns as check_columns,
        is_pattern as is_pattern,
        is_stdin as is_stdin,
        plain_stem as plain_stem,
        refuse as refuse,
        split_names as split_names,
    )
    from quadric.apps.shell.tables._prediction import (
        Predicted,
        predict,
        write_rows as write_rows,
    )
    from quadric.apps.shell.tables._saved_model import (
        OpenedModel as OpenedModel,
        TableNetwork,
        read_inputs,
    )
    from quadric.apps.shell.tables._schema import Schema
    from quadric.apps.shell.tables._source import Source, open_table
    from quadric.apps.shell.tables._streaming import Checkpoint, checkpoint_path, train_stream
    from quadric.apps.shell.tables._threshold import CheapestThreshold as CheapestThreshold
    from quadric.apps.shell.tables._training import Trained, train
    from quadric.apps.shell.tables._typical_rows import typical_rows as typical_rows

# Names are imported on first use (PEP 562), so that a file that cannot be read is reported before
# Polars and scikit-learn are imported.
_HOMES = {
    "MODEL": "_evaluation",
    "CertifiedTable": "_certification",
    "CheapestThreshold": "_threshold",
    "Checkpoint": "_streaming",
    "ColumnOptions": "_options",
    "Evaluation": "_evaluation",
    "OpenedModel": "_saved_model",
    "Predicted": "_prediction",
    "Schema": "_schema",
    "Settings": "_options",
    "Source": "_source",
    "Stream": "_options",
    "TableFormat": "_options",
    "TableNetwork": "_saved_model",
    "TestTable": "_held_out",
    "Trained": "_training",
    "certify_table": "_certification",
    "check_columns": "_options",
    "checkpoint_path": "_streaming",
    "contributions_of_row": "_one_row",
    "effects_of_row": "_one_row",
    "evaluate_table": "_held_out",
    "is_pattern": "_options",
    "is_stdin": "_options",
    "nearest_classes": "_one_row",
    "open_table": "_source",
    "optimum": "_optimum",
    "plain_stem": "_options",
    "predict": "_prediction",
    "predict_on_cluster": "_on_cluster",
    "read_inputs": "_saved_model",
    "refuse": "_options",
    "shown": "_evaluation",
    "split_names": "_options",
    "train": "_training",
    "train_on_cluster": "_on_cluster",
    "train_stream": "_streaming",
    "typical_rows": "_typical_rows",
    "write_rows": "_prediction",
}

__all__ = [
    "Checkpoint",
    "ColumnOptions",
    "Evaluation",
    "Predicted",
    "Schema",
    "Settings",
    "Source",
    "Stream",
    "TableFormat",
    "TableNetwork",
    "TestTable",
    "Trained",
    "checkpoint_path",
    "evaluate_table",
    "open_table",
    "predict",
    "read_inputs",
    "train",
    "train_stream",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module = f"quadric.apps.shell.tables.{_HOMES[name]}"
        if module not in sys.modules:
            _import(module)
        return getattr(sys.modules[module], name)
    raise AttributeError(f"module 'quadric.apps.shell.tables' has no attribute {name!r}")


def _import(module: str) -> None:
    """Import a module, and most of the packages below it, without collecting garbage.

    They keep all objects that they create, so that collections would find nothing. They would take
    a sixth of the time of a small command.
    """
    gc.disable()
    try:
        importlib.import_module(module)
    finally:
        gc.freeze()
        gc.enable()
