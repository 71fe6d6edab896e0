"""The one way to train layers on arrays.

`train` runs the epochs, each by one of two steppers: `PerSample` (the compiled loop) or `MiniBatch`
(the layers' own equations), or minimises the objective by L-BFGS. Where training stands is a
`TrainingState`.
"""
