"""Calls whose warnings are of kinds that a fit may give."""

import warnings

from fastkpca.errors import CertificateWarning, ComponentsWarning, DriftWarning, ScalesWarning

KINDS = CertificateWarning | ComponentsWarning | DriftWarning | ScalesWarning


def quiet(function, *arguments, **keywords):
    """(result, warnings)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments, **keywords)
    others = [w for w in caught if not issubclass(w.category, KINDS)]
    if others:
        raise AssertionError(f"unexpected warning: {others[0].category.__name__}: {others[0].message}")
    return result, caught


def silent(function, *arguments, **keywords):
    """The result alone."""
    return quiet(function, *arguments, **keywords)[0]
