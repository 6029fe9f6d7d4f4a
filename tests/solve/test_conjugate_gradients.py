"""Conjugate gradients for many columns: each as if it were alone, with an honest residual."""

import numpy as np
from reference import with_eigenvalues

from fastkpca.solve.conjugate_gradients import conjugate_gradients, solve_to_residual


def positive(n, seed, smallest=1e-3):
    return with_eigenvalues(np.random.default_rng(seed), np.geomspace(1.0, smallest, n))


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


def test_the_residual_is_that_of_the_solution_and_iterated_on():
    A = positive(50, 4, smallest=1e-6)
    B = np.random.default_rng(5).standard_normal((50, 3))
    for share, reachable in ((4e-11, True), (1e-14, False)):
        goal = share * np.linalg.norm(B, axis=0)
        claimed = conjugate_gradients(lambda V: A @ V, B, goal=goal, most_steps=10**5)
        assert (claimed.residuals <= goal).all()
        assert (np.linalg.norm(B - A @ claimed.solution, axis=0) > goal).any()
        reached = solve_to_residual(lambda V: A @ V, B, goal=goal, most_steps=10**5)
        np.testing.assert_array_equal(reached.residuals, np.linalg.norm(B - A @ reached.solution, axis=0))
        assert (reached.residuals <= goal).all() == reachable
        assert reached.steps < 10**4


def test_no_more_steps_than_were_asked_for():
    A = positive(50, 4, smallest=1e-6)
    B = np.random.default_rng(5).standard_normal((50, 3))
    reached = solve_to_residual(lambda V: A @ V, B, goal=np.zeros(3), most_steps=7)
    assert reached.steps == 7
