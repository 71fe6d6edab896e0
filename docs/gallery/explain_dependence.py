"""How a prediction depends on its inputs

Partial dependence is the mean prediction if one input is set to the same value in all rows. It can
be computed for every model, also with hidden layers. The lower plots show the strongest
interactions: the effect of the body mass index grows with the blood pressure, so the lines are not
parallel.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticRegressor
from quadric.plotting import plot_dependence

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
names = {
    "bmi": "body mass index (kg/m²)",
    "bp": "blood pressure (mm Hg)",
    "s5": "log triglycerides",
}
X = X[["age", *names]].rename(columns=names | {"age": "age (years)"})
model = make_pipeline(StandardScaler(), QuadraticRegressor((), alpha=1.0)).fit(X, y)

fig = plt.figure(figsize=(10, 6.4), layout="constrained")
plot_dependence(model, X, target="progression", figure=fig)
fig.suptitle("Progression of diabetes after one year, as a model with one quadratic layer sees it")
