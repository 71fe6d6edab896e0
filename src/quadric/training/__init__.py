"""Training of layers on arrays; all other packages train with `train`.

`train` runs epochs with one of two steppers, `PerSample` (the compiled loop) or `MiniBatch` (the
equations of the layers), or minimises the objective with L-BFGS. `TrainingState` holds the state of
the run.
"""
