"""Tasks for contributors, each in an environment of its own: ``nox -s tests``, ``nox -s lint``, ``nox -s docs``.

Everything that has to hold before a pull request is ``.ci/run``.
"""

import nox

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True


@nox.session
def tests(session: nox.Session) -> None:
    """The tests, in an environment with the installed packages; arguments go to pytest."""
    session.install(".[test]", "./kernels_contrib")
    session.run("pytest", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Linters and types."""
    project = nox.project.load_toml("pyproject.toml")["project"]
    session.install(*project["dependencies"], *project["optional-dependencies"]["lint"])  # mypy reads numpy's types
    session.run("ruff", "check", ".")
    session.run("cython-lint", "fastkpca")
    session.run("mypy")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The site, in build/html; warnings are errors, and links inside it are followed."""
    session.install(".[docs]", "./kernels_contrib")
    session.run("sphinx-build", "-W", "--keep-going", "-n", "docs", "build/html")
    session.run("python", "docs/check_links.py", "build/html")
