"""The scikit-learn steps that quadric supports, each expressed as a few generic operations.

`_table` lists the steps. An entry has three parts: the `operations` of a fitted step, the `facts`
that define it, and a function that restores it from these facts. `explain` composes operations,
`onnx` translates them, and `model_file` stores facts. Start reading at `_operations`.

This package imports `network`, `geometry` and `_utils`.
"""
