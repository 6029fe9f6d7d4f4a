"""From rows to a model: check, plan, run one route, certify, return; and the operators that other methods take.

``kpca.kpca`` shows the steps. The computations are in the rooms below; here they are chosen and put together.
"""
