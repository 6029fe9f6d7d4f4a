"""
Process monitoring
==================

A model of normal operation, control limits that keep their rate of false alarms, and the sensor behind each alarm. The
same from files: ``fastkpca fit --limits`` and ``fastkpca monitor``.
"""

# %%
# A process of five sensors
# -------------------------
# A tank is heated and drained. Two things vary, the load and the temperature outside; five sensors see them, some by
# curved relations. Later, one sensor begins to drift.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import fastkpca as fk

rng = np.random.default_rng(0)


def process(n):
    load, outside = rng.uniform(0.2, 1.0, n), rng.normal(10, 4, n)
    sensors = {
        "flow": 8 * load,
        "pressure": 1 + 0.5 * load**2,
        "power": 20 * load * (60 - outside) / 50,
        "temperature": 60 - 4 * load**2 + 0.2 * outside,
        "valve": 100 * np.sqrt(load),
    }
    noise = {"flow": 0.1, "pressure": 0.01, "power": 0.3, "temperature": 0.3, "valve": 1.0}
    return pd.DataFrame({name: values + noise[name] * rng.standard_normal(n) for name, values in sensors.items()})


normal, new = process(1200), process(120)
new.loc[80:, "pressure"] += np.linspace(0, 0.2, 40)  # the drift
times = pd.date_range("2026-03-01 06:00", periods=len(new), freq="10min")

# %%
# Model and limits
# ----------------
# The limits are made of rows that the model has not seen. ``joint`` makes the rate of false alarms that of both
# statistics together: 1 %.

model = fk.kpca(normal[:800], "gaussian", 5, sigma=6.0, standardize=True)
model = model.with_limits(fk.kpca_limits(model, normal[800:], confidence=0.99, joint=True))
print(model.limits)

# %%
# The charts
# ----------

t2, spe = fk.kpca_t2(model, new), fk.kpca_spe(model, new)
fig, axes = plt.subplots(2, 1, figsize=(8, 6), layout="constrained", sharex=True)
fk.plot.monitor(model.limits, t2, spe, axes, x=times, x_label="time")
plt.show()

# %%
# SPE rises with the drift: the pressure no longer fits the load. T^2 rises much less, for no single value is extreme.

fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
fk.plot.influence(model.limits, t2, spe, ax, names=times.strftime("%H:%M"))
plt.show()

# %%
# Which sensor?
# -------------
# A contribution is what a sensor alone takes off the SPE of a row, if it takes the best value within its range.

alarms = np.flatnonzero(model.limits.exceeded(t2=t2, spe=spe))
which = fk.kpca_contributions(model, new.iloc[alarms])
print(which)

fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
fk.plot.contributions(which, ax, row=len(alarms) - 1)
plt.show()

# %%
# False alarms
# ------------
# About 1 % of 20,000 further normal rows are flagged.

more = process(20_000)
flagged = model.limits.exceeded(t2=fk.kpca_t2(model, more), spe=fk.kpca_spe(model, more))
print(f"{flagged.mean():.2%}")
