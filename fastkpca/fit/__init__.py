"""From rows to a model: check, plan, run one route, certify, return; and the operators that other methods take.

``kpca.kpca`` tells the story. Everything that runs is in the rooms below; here it is chosen and put together.
"""
