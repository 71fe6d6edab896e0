"""The scikit-learn steps that quadric understands, each as a few neutral operations.

`table.py` lists the steps. For each one it has three things: its `operations`, the `facts` that
define it, and how to `restore` it from these facts. `explain` composes operations, `onnx`
translates them, and `model_file` stores facts. Start reading at `operations.py`.
"""
