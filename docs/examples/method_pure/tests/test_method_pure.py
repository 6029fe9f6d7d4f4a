import numpy as np
from method_pure import load

import fastkpca as fk


def test_it_is_found_saves_and_loads(tmp_path):
    assert "kernel_herding" in [entry.name for entry in fk.list_methods()]
    X = np.random.default_rng(0).standard_normal((2000, 2))
    herd = fk.get_method("kernel_herding")(X, 40, sigma=1.0)
    herd.save(tmp_path / "herd.model")
    again = load(tmp_path / "herd.model")
    assert np.array_equal(again.density(X), herd.density(X)) and again.kernel == herd.kernel

    def distance(rows):
        """Of the means in the kernel's space."""
        k = fk.get_kernel("gaussian", sigma=1.0)
        mean = fk.gram(X, k).column_means()
        chosen = np.exp(-((rows[:, None] - X) ** 2).sum(axis=2) / 2).mean(axis=0)
        among = np.exp(-((rows[:, None] - rows) ** 2).sum(axis=2) / 2).mean()
        return mean.mean() - 2 * chosen.mean() + among

    first = min(distance(X[start : start + 40]) for start in range(0, 2000, 40))
    assert len(set(herd.numbers)) == 40 and distance(herd.rows) < first / 2
