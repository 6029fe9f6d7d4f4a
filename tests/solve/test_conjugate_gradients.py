"""Conjugate gradients for many columns: each as if it were alone, with an honest residual."""

import numpy as np
import pytest

from fastkpca.solve.conjugate_gradients import conjugate_gradients


def positive(n, seed, smallest=1e-3):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return (Q * np.geomspace(1.0, smallest, n)) @ Q.T


def test_columns_of_all_sizes_are_solved():
    A = positive(60, 0)
    B = np.random.default_rng(1).standard_normal((60, 4)) * [1e-8, 0.0, 1.0, 1e8]
    goal = 1e-10 * np.linalg.norm(B, axis=0)
    reached = conjugate_gradients(lambda V: A @ V, B, goal=goal, most_steps=500)
    assert reached.definite and (reached.residuals <= goal).all()
    assert (np.linalg.norm(B - A @ reached.solution, axis=0) <= 1.1 * goal + 1e-14 * goal.max()).all()
    assert (reached.solution[:, 1] == 0).all()


def test_a_preconditioner_saves_steps():
    A = positive(80, 2, smallest=1e-6)
    inverse = np.linalg.inv(A + 1e-5 * np.eye(80))
    B = np.random.default_rng(3).standard_normal((80, 2))
    goal = 1e-6 * np.linalg.norm(B, axis=0)
    plain = conjugate_gradients(lambda V: A @ V, B, goal=goal, most_steps=1000)
    better = conjugate_gradients(lambda V: A @ V, B, goal=goal, most_steps=1000, precondition=lambda R: inverse @ R)
    assert better.steps < plain.steps / 3 and (better.residuals <= goal).all()


def test_negative_curvature_ends_the_column_that_meets_it():
    A = np.diag([2.0, 1.0, -1.0])
    B = np.array([[1.0, 0.1], [1.0, 0.1], [0.0, 5.0]])
    reached = conjugate_gradients(lambda V: A @ V, B, goal=np.full(2, 1e-12), most_steps=50)
    assert not reached.definite
    np.testing.assert_allclose(reached.solution[:, 0], [0.5, 1.0, 0.0], atol=1e-12)
    assert reached.residuals[1] > 1e-12


def test_the_best_iterate_is_returned_and_patience_ends_where_rounding_sets_in():
    A = positive(50, 4, smallest=1e-12)
    B = np.random.default_rng(5).standard_normal((50, 3))
    reached = conjugate_gradients(lambda V: A @ V, B, goal=np.zeros(3), most_steps=10**6, patience=50)
    assert reached.steps < 10**5
    assert (reached.residuals <= np.linalg.norm(B, axis=0)).all()
    assert np.linalg.norm(B - A @ reached.solution) == pytest.approx(np.linalg.norm(reached.residuals), rel=0.1)
