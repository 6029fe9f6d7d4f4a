# The instruction set of the loops of a module, which includes this after it has declared ``ops``, the table in use, and
# ``fk_select``, the selection of one (select_ops.h).


def use_instruction_set(name=None):
    """Choose the loops by name (baseline, avx2, avx512), or the best for None; returns the name chosen.

    For tests and benchmarks: a call that runs meanwhile in another thread may use either. Raises ValueError where
    this processor or this build has none of that name.
    """
    global ops, INSTRUCTION_SET
    found = fk_select((name or "").encode())
    if found is NULL:
        raise ValueError(f"no loops for instruction set {name!r} on this processor")
    ops = found
    INSTRUCTION_SET = found.name.decode()
    return INSTRUCTION_SET


INSTRUCTION_SET = ""
use_instruction_set()
